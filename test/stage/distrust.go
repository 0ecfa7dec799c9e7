package stage

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DistrustfulDatabase starts a server of its own in a namespace: one that keeps a binary log and does not trust its users
// with triggers, as servers are by default that keep one. It returns the SQLAlchemy URL of an empty database there.
func (s *Stage) DistrustfulDatabase(ctx context.Context, namespace string) (url string, err error) {
	here := metav1.ObjectMeta{Namespace: namespace, Name: mariadb}
	there := client.ObjectKey{Namespace: DatabaseNamespace, Name: mariadb}
	var server appsv1.Deployment
	var address corev1.Service
	var secret corev1.Secret
	for _, object := range []client.Object{&server, &address, &secret} {
		if err := s.Client.Get(ctx, there, object); err != nil {
			return "", fmt.Errorf("copy the database server: %w", err)
		}
	}
	server.Spec.Template.Spec.Containers[0].Args = []string{"--log-bin=binlog", "--log-bin-trust-function-creators=0"}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: here, Data: secret.Data},
		&corev1.Service{ObjectMeta: here, Spec: corev1.ServiceSpec{Selector: address.Spec.Selector, Ports: address.Spec.Ports}},
		&appsv1.Deployment{ObjectMeta: here, Spec: server.Spec},
	} {
		if err := s.Client.Create(ctx, object); err != nil {
			return "", fmt.Errorf("copy the database server: %w", err)
		}
	}
	if err := s.Await(ctx, "the database server in "+namespace, 5*time.Minute, s.RolledOut(namespace, mariadb)); err != nil {
		return "", err
	}
	return fmt.Sprintf("mysql+pymysql://glance:%s@%s.%s.svc:3306/glance", secret.Data["password"], mariadb, namespace), nil
}

// TrustUsers lets the users of such a server make triggers.
func (s *Stage) TrustUsers(ctx context.Context, namespace string) error {
	_, err := s.Kubectl(ctx, "", "-n", namespace, "exec", "deployment/"+mariadb, "--", "mariadb", "--execute", "SET GLOBAL log_bin_trust_function_creators = 1")
	if err != nil {
		return fmt.Errorf("let users make triggers: %w", err)
	}
	return nil
}
