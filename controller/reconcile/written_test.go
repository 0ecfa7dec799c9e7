package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAStaleReadIsNotActedOn(t *testing.T) {
	var w written
	key, now := types.NamespacedName{Name: "images"}, time.Unix(100, 0)
	at := func(version string, uid types.UID) metav1.Object {
		return &metav1.ObjectMeta{ResourceVersion: version, UID: uid}
	}
	assert.False(t, w.newer(key, at("5", "a"), now), "nothing was written yet")
	w.note(key, at("10", "a"), now)
	assert.True(t, w.newer(key, at("9", "a"), now))
	assert.False(t, w.newer(key, at("10", "a"), now))
	assert.False(t, w.newer(key, at("11", "a"), now))
	assert.False(t, w.newer(key, at("9", "b"), now), "another object of the name")
	assert.False(t, w.newer(key, at("9", "a"), now.Add(lag)), "versions that went back for good: a restored cluster")
	assert.False(t, w.newer(key, at("x", "a"), now))
	w.forget(key)
	assert.False(t, w.newer(key, at("9", "a"), now))
}
