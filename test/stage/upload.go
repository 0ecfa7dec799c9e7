package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Upload is a request that a pod of a drill holds open, as it holds an upload whose content is still on its way.
type Upload struct {
	Pod, Name string

	done   chan struct{}
	answer string
	at     time.Time
	err    error
}

// Upload begins to create an image at one pod, and returns when the pod has the request: it goes on when the word is given.
func (s *Stage) Upload(ctx context.Context, namespace, pod, word string) (*Upload, error) {
	u := &Upload{Pod: pod, Name: "upload-to-" + pod, done: make(chan struct{})}
	body := fmt.Sprintf(`{"name":%q,"disk_format":"raw","container_format":"bare"}`, u.Name)
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:9292/proxy/v2/images?hold=%s", namespace, pod, word)
	go func() {
		defer close(u.done)
		u.answer, u.err = s.Kubectl(ctx, body, "create", "--raw", path, "--filename", "-")
		u.at = time.Now()
	}()
	err := s.Await(ctx, "pod "+pod+" to hold an upload", time.Minute, func(ctx context.Context) (bool, string, error) {
		select {
		case <-u.done:
			_, _, err := u.Answer(ctx, time.Second)
			return false, "", errors.Join(errors.New("it has ended already"), err)
		default:
		}
		out, err := s.Kubectl(ctx, "", "-n", namespace, "logs", pod)
		if err != nil {
			return false, err.Error(), nil
		}
		return strings.Contains(out, "is held until the word "+word), "no word of it in the log", nil
	})
	return u, err
}

// Answer waits for the end of the upload and returns the id of the image and when it was answered for. An upload that
// failed is an error.
func (u *Upload) Answer(ctx context.Context, patience time.Duration) (id string, at time.Time, err error) {
	select {
	case <-u.done:
	case <-ctx.Done():
		return "", time.Time{}, context.Cause(ctx)
	case <-time.After(patience):
		return "", time.Time{}, fmt.Errorf("the upload to pod %s is not answered within %s", u.Pod, patience)
	}
	if u.err != nil {
		return "", u.at, fmt.Errorf("the upload to pod %s failed: %w", u.Pod, u.err)
	}
	var made struct{ ID, Name string }
	if err := json.Unmarshal([]byte(u.answer), &made); err != nil || made.ID == "" || made.Name != u.Name {
		return "", u.at, fmt.Errorf("the upload to pod %s was answered with %.200s", u.Pod, u.answer)
	}
	return made.ID, u.at, nil
}

// Evict ends a pod the way a drain of its node does.
func (s *Stage) Evict(ctx context.Context, namespace, pod string) error {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: pod}
	if err := s.Client.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: meta}, &policyv1.Eviction{ObjectMeta: meta}); err != nil {
		return fmt.Errorf("evict pod %s: %w", pod, err)
	}
	return nil
}

// Ending looks whether a pod has been told to end and has not ended yet.
func (s *Stage) Ending(namespace, name string) Look {
	return func(ctx context.Context) (bool, string, error) {
		var pod corev1.Pod
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod); err != nil {
			return false, err.Error(), nil
		}
		return pod.DeletionTimestamp != nil, "it has not been told to end", nil
	}
}
