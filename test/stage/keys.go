package stage

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PutKeys makes a Secret of fernet keys, as `keystone-manage fernet_setup` would make them as files: the key 0 is the
// next one, the highest the one that is used.
func (s *Stage) PutKeys(ctx context.Context, namespace, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{}}
	for i := range 2 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		secret.StringData[strconv.Itoa(i)] = base64.URLEncoding.EncodeToString(key)
	}
	if err := s.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("create secret %s: %w", name, err)
	}
	return nil
}
