package admission_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/openstack-upgrade/certs/serving"
	"github.com/c5c3/openstack-upgrade/certs/serving/mint"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/test/rows"
	"github.com/c5c3/openstack-upgrade/webhook/admission"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

// hook is a real webhook server and a client of it that speaks as the API
// server does.
type hook struct {
	url    string
	client *http.Client
}

// serve starts a webhook that runs until the test ends.
func serve(t testing.TB, policy admission.Policy, kinds ...admission.Kind) hook {
	t.Helper()
	volume := mint.Mount(t)
	pair := mint.Valid(t, 1, time.Hour)
	volume.Update(t, pair)
	s, err := server.Listen(server.Config{
		ListenAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", ShutdownTimeout: time.Second,
	}, admission.New(policy, kinds...), serving.Follow(volume.Dir, logr.Discard(), time.Now), logr.Discard())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: mint.Pool(pair), ServerName: "localhost"}}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		assert.NoError(t, <-done)
	})
	return hook{url: "https://" + s.ReviewAddress() + server.ReviewPath + "?timeout=3s", client: client}
}

// ask sends a review and reads the answer.
func (h hook) ask(t testing.TB, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	require.NoError(t, err)
	code, answer := h.post(t, body)
	require.Equal(t, http.StatusOK, code, string(answer))
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(answer, &review))
	require.Equal(t, "admission.k8s.io/v1", review.APIVersion)
	require.Equal(t, "AdmissionReview", review.Kind)
	require.NotNil(t, review.Response)
	require.Equal(t, request.UID, review.Response.UID)
	return review.Response
}

func (h hook) post(t testing.TB, body []byte) (int, []byte) {
	t.Helper()
	response, err := h.client.Post(h.url, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, answer
}

// glance and steady are those of the table.
var (
	glance = rows.Glance
	steady = rows.Steady
)

// creation and update are the requests that the API server makes of an edit.
func creation(t testing.TB, g *v1alpha1.Glance) *admissionv1.AdmissionRequest {
	t.Helper()
	return requestFor(t, admissionv1.Create, g.Namespace, g.Name, g, nil)
}

// update hands over the stored status in both objects, as the API server does
// for a kind with a status subresource.
func update(t testing.TB, stored, edited *v1alpha1.Glance) *admissionv1.AdmissionRequest {
	t.Helper()
	wanted := edited.DeepCopy()
	wanted.Status = stored.Status
	wanted.Generation = stored.Generation + 1
	return requestFor(t, admissionv1.Update, stored.Namespace, stored.Name, wanted, stored)
}

func requestFor(t testing.TB, operation admissionv1.Operation, namespace, name string, object, old any) *admissionv1.AdmissionRequest {
	t.Helper()
	dryRun := false
	kind := metav1.GroupVersionKind{Group: "openstack.c5c3.io", Version: "v1alpha1", Kind: "Glance"}
	resource := metav1.GroupVersionResource{Group: "openstack.c5c3.io", Version: "v1alpha1", Resource: "glances"}
	request := &admissionv1.AdmissionRequest{
		UID: types.UID("5f0e1c52-0b43-4b53-9a4e-0f5a6f6d2c11"), Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
		Name: name, Namespace: namespace, Operation: operation, DryRun: &dryRun,
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-edit"}`)},
	}
	request.UserInfo.Username = "kubernetes-admin"
	request.UserInfo.Groups = []string{"system:masters", "system:authenticated"}
	if object != nil {
		request.Object.Raw = raw(t, object)
	}
	if old != nil {
		request.OldObject.Raw = raw(t, old)
	}
	return request
}

func raw(t testing.TB, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return text
}
