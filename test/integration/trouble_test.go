package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/shared/upgrade"
	"github.com/c5c3/openstack-upgrade/test/build"
	"github.com/c5c3/openstack-upgrade/test/harness"
)

// A minute is how long people wait for a word; await allows no more.
func TestBL08WhatKeepsAPodFromStartingIsSaidWithinAMinuteAndHeals(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*scene) (repair func())
		words []string
	}{
		{"the database Secret is missing", func(s *scene) func() {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: build.DatabaseSecretRef}}
			require.NoError(s.t, s.Client.Delete(s.t.Context(), secret))
			return func() { s.Create(s.t, build.DatabaseSecret(s.ns)) }
		}, []string{"CreateContainerConfigError", `secret "glance-database" not found`}},
		{"a Secret with configuration is missing", func(s *scene) func() {
			return func() {
				s.Create(s.t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "keystone"}, StringData: map[string]string{"keystone.conf": ""}})
			}
		}, []string{"FailedMount", `secret "keystone" not found`}},
		{"the image cannot be pulled", func(s *scene) func() {
			return s.script(upgrade.Sync, harness.NeverPull(`Back-off pulling image "glance:2026.1"`))
		}, []string{"ImagePullBackOff: Back-off pulling image"}},
		{"no node takes the pod", func(s *scene) func() {
			return s.script(upgrade.Sync, harness.Unschedulable("0/3 nodes are available: 3 Insufficient memory."))
		}, []string{"Unschedulable: 0/3 nodes are available"}},
		{"the quota is full", func(s *scene) func() {
			quota := build.PodQuota(s.ns, 0)
			s.Create(s.t, quota)
			harness.Await(s.t, s.Env, quota, "the quota to count", func(q *corev1.ResourceQuota) string { return lacks(q.Status.Hard != nil, "not yet") })
			return func() { require.NoError(s.t, s.Client.Delete(s.t.Context(), quota)) }
		}, []string{"has no pod", "FailedCreate", "exceeded quota: pods"}},
		{"the quota holds no Job", func(s *scene) func() {
			quota := build.PodQuota(s.ns, 0)
			quota.Spec.Hard = corev1.ResourceList{"count/jobs.batch": quota.Spec.Hard[corev1.ResourcePods]}
			s.Create(s.t, quota)
			harness.Await(s.t, s.Env, quota, "the quota to count", func(q *corev1.ResourceQuota) string { return lacks(q.Status.Hard != nil, "not yet") })
			return func() { require.NoError(s.t, s.Client.Delete(s.t.Context(), quota)) }
		}, []string{"create Job images-db-sync", "exceeded quota: pods"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			repair := c.spoil(s)
			s.start().glance(build.Adjust(func(g *v1alpha1.Glance) {
				if c.words[0] == "FailedMount" {
					g.Spec.ConfigSecretRefs = []v1alpha1.SecretReference{{Name: "keystone"}}
				}
			}))
			s.await("the trouble", says(upgrade.DBSyncInProgress, c.words...))
			require.Empty(t, s.told(), "trouble that can pass is no event")
			repair()
			s.await("the install to end", rests("2026.1"))
		})
	}
}

func TestBL08ARefusalByPodSecurityIsSaidAndHeals(t *testing.T) {
	// What is rendered passes "restricted"; an annotation that a user adds need not.
	unconfined := build.Adjust(func(g *v1alpha1.Glance) {
		g.Spec.Jobs.PodAnnotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/db-sync-2": "unconfined"}
	})
	s := open(t).start().glance(unconfined)
	s.await("the refusal", says(upgrade.DBSyncInProgress, "has no pod", "FailedCreate", `violates PodSecurity "restricted:latest"`))
	adjust(s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, func(ns *corev1.Namespace) {
		ns.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
	})
	s.await("the install to end", rests("2026.1"))
}
