package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestACacheThatIsBehindOurOwnWriteIsKnown(t *testing.T) {
	var w written
	key, now := types.NamespacedName{Name: "images"}, time.Unix(100, 0)
	at := func(version string, uid types.UID) metav1.Object {
		return &metav1.ObjectMeta{ResourceVersion: version, UID: uid}
	}
	behind := func(shown metav1.Object, now time.Time) bool {
		is, _ := w.behind(key, shown, now)
		return is
	}
	assert.False(t, behind(at("5", "a"), now), "nothing was written yet")
	w.note(key, at("10", "a"), now)
	assert.True(t, behind(at("9", "a"), now))
	assert.True(t, behind(nil, now), "it does not show what was created")
	assert.True(t, behind(at("9", "b"), now), "it shows a namesake that was there before")
	is, left := w.behind(key, at("9", "a"), now.Add(lag-1))
	assert.True(t, is)
	assert.Equal(t, time.Duration(1), left)
	for _, later := range []time.Duration{lag, 2 * lag} {
		is, left = w.behind(key, at("9", "a"), now.Add(later))
		assert.True(t, is, "it is not believed however long it takes")
		assert.Zero(t, left)
	}
	for _, shown := range []metav1.Object{at("10", "a"), at("11", "a"), at("11", "b"), at("x", "a")} {
		w.note(key, at("10", "a"), now)
		assert.False(t, behind(shown, now), "%s of %s", shown.GetResourceVersion(), shown.GetUID())
		assert.False(t, behind(nil, now), "what was shown once and is gone was deleted")
	}
	w.note(key, at("x", "a"), now)
	assert.False(t, behind(at("9", "a"), now), "no number")
	w.note(key, at("10", "a"), now)
	w.forget(key)
	assert.False(t, behind(at("9", "a"), now))
}
