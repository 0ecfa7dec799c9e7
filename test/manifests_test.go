package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/c5c3/openstack-upgrade/certs/issuing"
	"github.com/c5c3/openstack-upgrade/shared/api/v1alpha1"
	"github.com/c5c3/openstack-upgrade/webhook/server"
)

const (
	namespace      = "openstack-upgrade"
	webhookName    = "openstack-upgrade-webhook"
	controllerName = "openstack-upgrade-controller"
)

// foreign kinds have no Go types here, so their fields are not checked.
var foreign = []string{"ServiceMonitor", "PrometheusRule"}

// manifests is what kubectl apply -k would send.
type manifests []client.Object

func TestEveryOverlayBuildsWithEveryFieldKnown(t *testing.T) {
	for _, name := range overlays(t) {
		t.Run(name, func(t *testing.T) {
			all := build(t, "overlays/"+name)
			seen := map[string]bool{}
			for _, object := range all {
				key := object.GetObjectKind().GroupVersionKind().String() + " " + client.ObjectKeyFromObject(object).String()
				assert.False(t, seen[key], "%s is there twice", key)
				seen[key] = true
			}
			for _, deployment := range pick[*appsv1.Deployment](all) {
				assert.Equal(t, namespace, deployment.Namespace)
			}
		})
	}
}

func TestProductionHasTwoReplicasAndDevelopmentOne(t *testing.T) {
	for name, want := range map[string]int32{"dev": 1, "production": 2, "namespaced": 2} {
		for _, deployment := range pick[*appsv1.Deployment](build(t, "overlays/"+name)) {
			assert.Equal(t, want, *deployment.Spec.Replicas, "%s of %s", deployment.Name, name)
		}
	}
}

func TestArgumentsAndPortsAreWhatTheBinariesUnderstand(t *testing.T) {
	help := map[string]string{webhookName: helpOf(t, "webhook"), controllerName: helpOf(t, "controller")}
	flagOf := map[string]string{"https": "listen-address", "health": "health-address", "metrics": "metrics-address"}
	for _, overlay := range overlays(t) {
		for _, deployment := range pick[*appsv1.Deployment](build(t, "overlays/"+overlay)) {
			text, container := help[deployment.Name], deployment.Spec.Template.Spec.Containers[0]
			require.NotEmpty(t, text, "%s is neither binary", deployment.Name)
			for _, arg := range container.Args {
				flag, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
				assert.Contains(t, text, "-"+flag+" ", "%s of %s has argument %s", deployment.Name, overlay, arg)
			}
			for _, port := range container.Ports {
				flag := flagOf[port.Name]
				require.NotEmpty(t, flag, "port %s belongs to no flag", port.Name)
				_, rest, _ := strings.Cut(text, "-"+flag+" ")
				_, rest, _ = strings.Cut(rest, `(default "`)
				address, _, found := strings.Cut(rest, `"`)
				require.True(t, found, "%s --help tells no default of --%s", deployment.Name, flag)
				assert.Equal(t, address, ":"+decimal(port.ContainerPort), "%s serves %s", deployment.Name, port.Name)
			}
		}
	}
}

func TestTheCertificateIsForTheServiceThatTheAPIServerCalls(t *testing.T) {
	for _, overlay := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := build(t, "overlays/"+overlay)
			hook := one[*admissionregistrationv1.ValidatingWebhookConfiguration](t, all)
			called := hook.Webhooks[0].ClientConfig.Service
			require.NotNil(t, called)
			service := named[*corev1.Service](t, all, called.Name)
			assert.Equal(t, called.Namespace, service.Namespace)
			assert.Equal(t, server.ReviewPath, *called.Path)
			if called.Port != nil {
				assert.Equal(t, service.Spec.Ports[0].Port, *called.Port)
			} else {
				assert.Equal(t, int32(443), service.Spec.Ports[0].Port)
			}
			assert.Equal(t, "https", service.Spec.Ports[0].TargetPort.StrVal)

			assert.Equal(t, issuing.Webhook.InjectFrom(), hook.Annotations[certmanagerv1.WantInjectAnnotation])
			leaf := named[*certmanagerv1.Certificate](t, all, issuing.Webhook.Leaf().Name)
			assert.Contains(t, leaf.Spec.DNSNames, service.Name+"."+service.Namespace+".svc")
			arguments := named[*appsv1.Deployment](t, all, webhookName).Spec.Template.Spec.Containers[0].Args
			assert.Contains(t, arguments, "--tls-name="+service.Name+"."+service.Namespace+".svc")

			pod := named[*appsv1.Deployment](t, all, webhookName).Spec.Template.Spec
			require.Len(t, pod.Volumes, 1)
			assert.Equal(t, leaf.Spec.SecretName, pod.Volumes[0].Secret.SecretName)
			assert.Equal(t, pod.Volumes[0].Name, pod.Containers[0].VolumeMounts[0].Name)
			assert.Contains(t, helpOf(t, "webhook"), `(default "`+pod.Containers[0].VolumeMounts[0].MountPath+`")`)
		})
	}
}

func TestImagesAreTheOnesThatMakeImagesBuilds(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, want := range []string{"REGISTRY   ?= localhost/openstack-upgrade\n", "TAG        ?= dev\n"} {
		require.Contains(t, string(makefile), want)
	}
	for _, overlay := range overlays(t) {
		for _, deployment := range pick[*appsv1.Deployment](build(t, "overlays/"+overlay)) {
			binary := strings.TrimPrefix(deployment.Name, namespace+"-")
			assert.Equal(t, "localhost/openstack-upgrade/"+binary+":dev", deployment.Spec.Template.Spec.Containers[0].Image)
		}
	}
}

func overlays(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("../deploy/overlays")
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	require.Subset(t, names, []string{"dev", "production", "namespaced"})
	return names
}

// built and told keep what takes a second to make; nobody changes what is in them.
var (
	built = map[string]manifests{}
	told  = map[string]string{}
)

// build runs kustomize over a directory of deploy, with components on top, and reads the result strictly.
func build(t *testing.T, dir string, components ...string) manifests {
	t.Helper()
	key := strings.Join(append([]string{dir}, components...), " ")
	if all, done := built[key]; done {
		return all
	}
	top := t.TempDir()
	relative := func(path string) string {
		absolute, err := filepath.Abs("../deploy/" + path)
		require.NoError(t, err)
		// Kustomize resolves symbolic links of its root before it looks for anything below.
		root, err := filepath.EvalSymlinks(top)
		require.NoError(t, err)
		found, err := filepath.Rel(root, absolute)
		require.NoError(t, err)
		return found
	}
	kustomization := map[string]any{"resources": []string{relative(dir)}}
	var added []string
	for _, component := range components {
		added = append(added, relative("components/"+component))
	}
	kustomization["components"] = added
	text, err := yaml.Marshal(kustomization)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(top, "kustomization.yaml"), text, 0o600))

	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), top)
	require.NoError(t, err)
	decoder := serializer.NewCodecFactory(scheme(), serializer.EnableStrict).UniversalDeserializer()
	var all manifests
	for _, resource := range result.Resources() {
		if slices.Contains(foreign, resource.GetKind()) {
			continue
		}
		text, err := resource.AsYAML()
		require.NoError(t, err)
		object, _, err := decoder.Decode(text, nil, nil)
		require.NoError(t, err, "%s", resource.CurId())
		all = append(all, object.(client.Object))
	}
	built[key] = all
	return all
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, certmanagerv1.AddToScheme, v1alpha1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

func pick[T client.Object](all manifests) []T {
	var found []T
	for _, object := range all {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func one[T client.Object](t *testing.T, all manifests) T {
	t.Helper()
	found := pick[T](all)
	require.Len(t, found, 1, "%T", *new(T))
	return found[0]
}

func named[T client.Object](t *testing.T, all manifests, name string) T {
	t.Helper()
	for _, object := range pick[T](all) {
		if object.GetName() == name {
			return object
		}
	}
	require.FailNow(t, "missing", "%T %s", *new(T), name)
	return *new(T)
}

// helpOf is what a binary says about its flags.
func helpOf(t *testing.T, binary string) string {
	t.Helper()
	if help, done := told[binary]; done {
		return help
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"run"}, strings.Fields("./"+binary), []string{"--help"})...)
	cmd.Dir = ".."
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s --help: %s", binary, output)
	told[binary] = string(output)
	return told[binary]
}
