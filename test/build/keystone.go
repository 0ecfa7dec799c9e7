package build

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
)

// What a Keystone has when nothing else is said.
const (
	KeystoneRepository = "registry.example.org/openstack/keystone"
	FernetSecretRef    = "keystone-fernet"
	AdminSecretRef     = "keystone-admin"
)

// Keystone is a Keystone of the default release with one replica, fernet keys and a first user.
func Keystone(namespace, name string, changes ...func(*v1alpha1.Keystone)) *v1alpha1.Keystone {
	k := &v1alpha1.Keystone{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Keystone"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.KeystoneSpec{
			Image:               v1alpha1.ImageSpec{Repository: KeystoneRepository, Tag: DefaultRelease},
			Deployment:          v1alpha1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Database:            v1alpha1.DatabaseSpec{SecretRef: v1alpha1.SecretKeyReference{Name: DatabaseSecretRef, Key: "connection"}},
			FernetKeysSecretRef: &v1alpha1.SecretReference{Name: FernetSecretRef},
			Bootstrap:           &v1alpha1.BootstrapSpec{PasswordSecretRef: v1alpha1.PasswordReference{Name: AdminSecretRef, Key: "password"}},
		},
	}
	for _, change := range changes {
		change(k)
	}
	return k
}

// KeystoneSecrets are the fernet keys and the password that a Keystone of Keystone refers to.
func KeystoneSecrets(namespace string) (fernet, admin *corev1.Secret) {
	fernet = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: FernetSecretRef}, StringData: map[string]string{"0": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}
	admin = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: AdminSecretRef}, StringData: map[string]string{"password": "secret"}}
	return fernet, admin
}
