package helm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

// container returns the container of a pod that has a name.
func container(t *testing.T, pod resource, name string) resource {
	t.Helper()
	for _, c := range append(pod.list("spec", "containers"), pod.list("spec", "initContainers")...) {
		if c.text("name") == name {
			return c
		}
	}
	t.Fatalf("the pod has no container %s", name)
	return nil
}

// args are a container's.
func args(c resource) []string {
	var out []string
	l, _ := c.at("args").([]any)
	for _, a := range l {
		out = append(out, fmt.Sprint(a))
	}
	return out
}

// flag is the value of --NAME=VALUE among a container's arguments.
func flag(t *testing.T, c resource, name string) string {
	t.Helper()
	for _, a := range args(c) {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
	}
	t.Fatalf("no --%s in %q", name, args(c))
	return ""
}

// pool renders a pool "default" with values and returns its workload.
func pool(t *testing.T, kind string, set ...string) (all []resource, workload, worker resource) {
	t.Helper()
	all = objects(t, render(t, values(set...)...))
	workload = find(t, all, kind, "worker-default")
	return all, workload, container(t, pods([]resource{workload})[kind+"/"+workload.name()], "worker")
}

// TestWorkerIsCopiedIn holds that an image that knows nothing of Fantasia gets
// the worker from an init container, and that the others do not.
func TestWorkerIsCopiedIn(t *testing.T) {
	_, workload, worker := pool(t, "Deployment")
	pod := resource(workload.at("spec", "template").(map[string]any))
	install := container(t, pod, "install-worker")
	if diff := cmp.Diff([]string{"install", "/fantasia"}, args(install)); diff != "" {
		t.Error(diff)
	}
	if worker.text("command", 0) != "/fantasia/worker" || worker.text("image") != "train:1" ||
		!strings.Contains(install.text("image"), "/worker:") {
		t.Errorf("the worker is %s in %s, from %s", worker.text("command", 0), worker.text("image"), install.text("image"))
	}
	for _, set := range [][]string{{`pools.default.image=""`}, {`pools.default.workerPath="/bin/worker"`}} {
		_, workload, worker := pool(t, "Deployment", set...)
		if workload.at("spec", "template", "spec", "initContainers") != nil || worker.text("command", 0) == "/fantasia/worker" {
			t.Errorf("%s copies a worker in", set)
		}
	}
}

// TestStateSurvives holds that a worker's state is on a volume, which outlives the
// container, and on a claim of the pod's own where that is asked for.
func TestStateSurvives(t *testing.T) {
	for kind, set := range map[string][]string{"Deployment": nil, "StatefulSet": {`pools.default.state.type="persistentVolumeClaim"`}} {
		_, workload, worker := pool(t, kind, set...)
		dir, volume := flag(t, worker, "state"), ""
		for _, m := range worker.list("volumeMounts") {
			if m.text("mountPath") == dir {
				volume = m.text("name")
			}
		}
		volumes := workload.list("spec", "template", "spec", "volumes")
		claims := workload.list("spec", "volumeClaimTemplates")
		isVolume := slices.ContainsFunc(volumes, func(v resource) bool { return v.text("name") == volume && v.at("emptyDir") != nil })
		isClaim := slices.ContainsFunc(claims, func(v resource) bool { return v.text("metadata", "name") == volume })
		if isVolume == isClaim || isClaim != (kind == "StatefulSet") {
			t.Errorf("%s keeps its state on volume %q: emptyDir %v, claim %v", kind, volume, isVolume, isClaim)
		}
	}
}

// TestStateOfJobs holds that the logs of trials that are Jobs outlive the worker's pod where the
// chart has a storage class, unless the values say otherwise, and that they are bounded.
func TestStateOfJobs(t *testing.T) {
	const template = `pools.default.kubejob.template="kind: Job"`
	for _, c := range []struct {
		set   []string
		claim bool
		class string
	}{
		{nil, true, ""},
		{[]string{`nats.bundled.persistence.storageClassName="fast"`}, true, "fast"},
		{[]string{`nats.bundled.persistence.storageClassName="fast"`, `pools.default.state.storageClassName="mine"`}, true, "mine"},
		{[]string{`nats.bundled.persistence.enabled=false`, `etcd.bundled.persistence.storageClassName="slow"`}, true, "slow"},
		{[]string{`nats.bundled.persistence.enabled=false`, `etcd.bundled.persistence.enabled=false`}, false, ""},
		{[]string{`pools.default.state.type="emptyDir"`}, false, ""},
	} {
		_, workload, worker := pool(t, "StatefulSet", append(c.set, template)...)
		claims := workload.list("spec", "volumeClaimTemplates")
		if (len(claims) == 1) != c.claim || c.claim && claims[0].text("spec", "storageClassName") != c.class {
			t.Errorf("%s: the claims are %v, want one: %v, of class %q", c.set, claims, c.claim, c.class)
		}
		if keep := flag(t, worker, "keep-trials"); keep != "1Gi" {
			t.Errorf("%s: it keeps %s of logs, want 1Gi", c.set, keep)
		}
	}
}

// TestGraceIsLongerThanHandingBack holds, for all combinations, that Kubernetes
// waits for a worker longer than the worker takes to hand its trials back, and for
// a coordinator longer than its preStop hook.
func TestGraceIsLongerThanHandingBack(t *testing.T) {
	for _, file := range combinations(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			for name, pod := range pods(objects(t, render(t, "--values="+file))) {
				grace, _ := pod.at("spec", "terminationGracePeriodSeconds").(int)
				for _, c := range pod.list("spec", "containers") {
					switch c.text("name") {
					case "worker":
						drain, err := time.ParseDuration(flag(t, c, "drain"))
						// A worker that has drained still closes its connections, for up to 10 s.
						if err != nil || time.Duration(grace)*time.Second < drain+10*time.Second {
							t.Errorf("%s drains for %v of %d s", name, drain, grace)
						}
					case "coordinator":
						if sleep, _ := c.at("lifecycle", "preStop", "sleep", "seconds").(int); grace < sleep+20 {
							t.Errorf("%s sleeps %d of %d s", name, sleep, grace)
						}
					}
				}
			}
		})
	}
}

// TestGPUs holds that a pod asks for its GPUs and that its worker shares them out,
// and that others see none.
func TestGPUs(t *testing.T) {
	_, _, worker := pool(t, "Deployment", "pools.default.gpus=2")
	if flag(t, worker, "gpus") != "auto" || worker.at("resources", "limits", "nvidia.com/gpu") != 2 {
		t.Errorf("with GPUs: %v, %v", args(worker), worker.at("resources"))
	}
	_, _, worker = pool(t, "Deployment")
	if flag(t, worker, "gpus") != "none" || worker.at("resources", "limits") != nil {
		t.Errorf("without GPUs: %v, %v", args(worker), worker.at("resources"))
	}
}

// TestCommands holds that the pool's own command comes last, as it is given.
func TestCommands(t *testing.T) {
	_, _, worker := pool(t, "Deployment", `pools.default.command=["python","a b.py","${args}"]`, "pools.default.allowStudyCommands=false")
	all := args(worker)
	if diff := cmp.Diff([]string{"--", "python", "a b.py", "${args}"}, all[len(all)-4:]); diff != "" {
		t.Error(diff)
	}
	if slices.Contains(all, "--allow-study-commands") {
		t.Errorf("%q allows the studies' commands", all)
	}
	if _, err := run(t, "helm", append([]string{"template", "f", chart}, values("poolDefaults.allowStudyCommands=false")...)...); err == nil ||
		!strings.Contains(err.Error(), "pools.default: workers without a command run nothing") {
		t.Errorf("a pool that can run nothing: %v", err)
	}
}

// TestPoolsDiffer holds that one pool's values do not leak into another's.
func TestPoolsDiffer(t *testing.T) {
	all := objects(t, render(t, values(`pools={"a":{"slots":3,"preemptible":true,"nodeSelector":{"x":"y"}},"b":{}}`)...))
	a, b := find(t, all, "Deployment", "worker-a"), find(t, all, "Deployment", "worker-b")
	at := func(o resource) resource { return o.list("spec", "template", "spec", "containers")[0] }
	if flag(t, at(a), "slots") != "3" || flag(t, at(b), "slots") != "1" || flag(t, at(a), "pool") != "a" || flag(t, at(b), "pool") != "b" {
		t.Errorf("a: %q, b: %q", args(at(a)), args(at(b)))
	}
	if a.at("spec", "template", "spec", "tolerations") == nil || b.at("spec", "template", "spec", "tolerations") != nil ||
		b.at("spec", "template", "spec", "nodeSelector") != nil {
		t.Error("b is where a is")
	}
}

// TestScaledPoolsHaveNoReplicas holds that an upgrade does not undo what somebody
// else has set.
func TestScaledPoolsHaveNoReplicas(t *testing.T) {
	for _, method := range []string{"none", "keda", "leader"} {
		all, workload, _ := pool(t, "Deployment", fmt.Sprintf("pools.default.autoscaling.method=%q", method), "pools.default.slots=4",
			"pools.default.autoscaling.maxReplicas=7")
		if has := workload.at("spec", "replicas") != nil; has != (method == "none") {
			t.Errorf("%s: the deployment says how many replicas it has: %v", method, has)
		}
		switch method {
		case "keda":
			scaled := find(t, all, "ScaledObject", "worker-default")
			trigger := scaled.list("spec", "triggers")[0]
			if scaled.at("spec", "maxReplicaCount") != 7 || trigger.text("metadata", "threshold") != "4" ||
				trigger.text("metadata",
					"query") != `max(fantasia_pool_useful_parallelism{fantasia_pool="default"}) or 0 * max(fantasia_leader_leading == 1)` ||
				trigger.text("metadata", "ignoreNullValues") != "false" {
				t.Errorf("scaled by %v", scaled.at("spec"))
			}
		case "leader":
			text := find(t, all, "ConfigMap", "scale").text("data", "scale.yaml")
			for _, want := range []string{"max: 7", "slots: 4", "name: f-fantasia-worker-default"} {
				if !strings.Contains(text, want) {
					t.Errorf("the leader reads\n%s", text)
				}
			}
			role := find(t, all, "Role", "scale")
			if diff := cmp.Diff([]any{"f-fantasia-worker-default"}, role.list("rules")[0].at("resourceNames")); diff != "" ||
				len(role.list("rules")) != 1 {
				t.Errorf("the leader may scale %v", role.at("rules"))
			}
		}
	}
}

// TestNatsConfigChangesRestartIt holds that the configuration's checksum is in the
// pods, and changes with it.
func TestNatsConfigChangesRestartIt(t *testing.T) {
	sum := func(set ...string) string {
		all := objects(t, render(t, values(set...)...))
		return find(t, all, "StatefulSet", "nats").text("spec", "template", "metadata", "annotations", "checksum/config")
	}
	if a, b := sum(), sum("nats.bundled.maxPayload=1048576"); a == b || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(a) {
		t.Errorf("checksums %q and %q", a, b)
	}
}

// TestClusters holds that each of the bundled servers knows all.
func TestClusters(t *testing.T) {
	all := objects(t, render(t, values("nats.bundled.replicas=3", "etcd.bundled.replicas=3")...))
	config := find(t, all, "ConfigMap", "nats").text("data", "nats.conf")
	cluster := flag(t, container(t, resource(find(t, all, "StatefulSet", "etcd").at("spec", "template").(map[string]any)), "etcd"),
		"initial-cluster")
	for i := range 3 {
		n := strconv.Itoa(i)
		if !strings.Contains(config, "nats://f-fantasia-nats-"+n+".f-fantasia-nats.tuning.svc.cluster.local:6222") ||
			!strings.Contains(cluster, "f-fantasia-etcd-"+n+"=http://f-fantasia-etcd-"+n+".f-fantasia-etcd.tuning.svc.cluster.local:2380") {
			t.Errorf("server %d is not in\n%s\n%s", i, config, cluster)
		}
	}
	for _, name := range []string{"nats", "etcd"} {
		find(t, all, "PodDisruptionBudget", name)
	}
}

// TestNatsAcceptsItsConfiguration shows what is rendered to nats-server itself.
func TestNatsAcceptsItsConfiguration(t *testing.T) {
	nats := testenv.Build(t, "github.com/nats-io/nats-server/v2")
	ca := testenv.NewCA(t)
	for _, set := range [][]string{{"nats.bundled.replicas=1"}, {"nats.bundled.replicas=3"}, {"nats.bundled.replicas=1", "tls.enabled=true"},
		{"nats.bundled.replicas=3", "tls.enabled=true"}} {
		all := objects(t, render(t, values(append(set, "nats.bundled.accounts=true")...)...))
		dir := t.TempDir()
		ca.Issue("nats", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err := os.Link(ca.File, filepath.Join(dir, "ca.crt")); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{
			"nats/nats.conf": strings.ReplaceAll(find(t, all, "ConfigMap", "nats").text("data", "nats.conf"), "/etc/nats-tls/",
				dir+"/"),
			"nats-accounts/accounts.conf": find(t, all, "Secret", "nats-accounts").text("stringData", "accounts.conf"),
		} {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), nats, "-t", "--config", filepath.Join(dir, "nats", "nats.conf"))
		cmd.Env = append(os.Environ(), "POD_NAME=f-fantasia-nats-0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", set, err, out)
		}
	}
}

// TestUpdatesNeedNoRoom checks that an update of a pool makes progress on nodes that have
// no room for another pod, and that a pool may replace all its pods at once.
func TestUpdatesNeedNoRoom(t *testing.T) {
	_, workload, _ := pool(t, "Deployment")
	want := map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 0, "maxUnavailable": "25%"}}
	if diff := cmp.Diff(want, workload.at("spec", "strategy")); diff != "" {
		t.Error(diff)
	}
	_, workload, _ = pool(t, "Deployment", `pools.default.strategy.type="Recreate"`)
	if diff := cmp.Diff(map[string]any{"type": "Recreate"}, workload.at("spec", "strategy")); diff != "" {
		t.Error(diff)
	}
	for replicas, unavailable := range map[string]int{"1": 0, "3": 1} {
		all := objects(t, render(t, values("coordinator.replicas="+replicas)...))
		if got := find(t, all, "Deployment", "coordinator").at("spec", "strategy", "rollingUpdate", "maxUnavailable"); got != unavailable {
			t.Errorf("of %s coordinators an update removes %v, want %d", replicas, got, unavailable)
		}
	}
}

// TestDefaultsFitTwoCores checks that a release with two workers leaves half of a node of
// two cores to others: the control plane of a cluster of one node requests most of it.
func TestDefaultsFitTwoCores(t *testing.T) {
	total := 0
	for name, pod := range pods(objects(t, render(t, values("pools.default.replicas=2")...))) {
		replicas := 1
		switch name {
		case "Deployment/f-fantasia-coordinator":
			replicas = 3
		case "Deployment/f-fantasia-worker-default":
			replicas = 2
		case "Pod/f-fantasia-test":
			continue
		}
		for _, c := range pod.list("spec", "containers") {
			text, ok := strings.CutSuffix(c.text("resources", "requests", "cpu"), "m")
			cpu, err := strconv.Atoi(text)
			if !ok || err != nil {
				t.Fatalf("%s requests the CPU %v, want thousandths of a core", name, c.at("resources", "requests", "cpu"))
			}
			total += replicas * cpu
		}
	}
	if total > 1000 {
		t.Errorf("the default release requests %d millicores, want 1000 at most", total)
	}
}

// A pool that creates the Jobs of studies may do so in the listed namespaces only, and
// coordinators and workers read the same policies.
func TestStudyJobs(t *testing.T) {
	set := []string{`studies.namespaces=["team-a","team-b"]`, `studies.jobs={"team-a":{"serviceAccounts":["training"]}}`,
		`pools.default={"kubejob":{"allowStudyJobs":true}}`,
		`studies.kinds={"PyTorchJob":{"apiVersion":"kubeflow.org/v1","resource":"pytorchjobs","pods":["spec.pytorchReplicaSpecs.*.template"],"reporter":"spec.pytorchReplicaSpecs.Master.template"}}`}
	all := objects(t, render(t, values(set...)...))
	var bound []string
	for _, o := range all {
		if o.kind() == "RoleBinding" && o.name() == "tuning-f-fantasia-worker-default" {
			bound = append(bound, o.text("metadata", "namespace")+" "+o.text("roleRef", "kind")+"/"+o.text("roleRef", "name")+" "+
				o.text("subjects", 0, "namespace")+"/"+o.text("subjects", 0, "name"))
		}
		if o.kind() == "ClusterRoleBinding" && o.text("roleRef", "name") == "tuning-f-fantasia-study-jobs" {
			t.Error("the rights to create Jobs are bound in all namespaces")
		}
	}
	if diff := cmp.Diff([]string{"team-a ClusterRole/tuning-f-fantasia-study-jobs tuning/f-fantasia-worker-default"}, bound); diff != "" {
		t.Errorf("the bindings differ (-want +got):\n%s", diff)
	}
	workload := find(t, all, "StatefulSet", "worker-default")
	worker := container(t, pods([]resource{workload})["StatefulSet/"+workload.name()], "worker")
	if flag(t, worker, "study-jobs") != "/etc/fantasia/studies/jobs.yaml" || !strings.Contains(worker.text("image"), "/kubeworker:") {
		t.Errorf("the worker is %s with %q", worker.text("image"), args(worker))
	}
	if slices.ContainsFunc(args(worker),
		func(a string) bool { return strings.HasPrefix(a, "--template") || strings.HasPrefix(a, "--owner") }) {
		t.Errorf("a worker without a template has the arguments %q", args(worker))
	}
	deployment := find(t, all, "Deployment", "coordinator")
	coordinator := container(t, pods([]resource{deployment})["Deployment/"+deployment.name()], "coordinator")
	if flag(t, coordinator, "study-jobs") != "/etc/fantasia/studies/jobs.yaml" {
		t.Errorf("the coordinator has the arguments %q", args(coordinator))
	}
	// Both programs read the file by this package.
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(find(t, all, "ConfigMap", "studies").text("data", "jobs.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	policies, err := jobpolicy.Read(path)
	if err != nil || len(policies) != 1 || !slices.Equal(policies["team-a"].ServiceAccounts, []string{"training"}) {
		t.Errorf("the policies are %+v, %v", policies, err)
	}
	want := jobpolicy.Kind{APIVersion: "kubeflow.org/v1", Resource: "pytorchjobs", Pods: []string{"spec.pytorchReplicaSpecs.*.template"},
		Reporter: "spec.pytorchReplicaSpecs.Master.template"}
	if diff := cmp.Diff(map[string]jobpolicy.Kind{"PyTorchJob": want}, policies["team-a"].Kinds); diff != "" {
		t.Errorf("the kinds differ (-want +got):\n%s", diff)
	}
	var rights []string
	for _, o := range all {
		if o.kind() == "ClusterRole" && o.name() == "tuning-f-fantasia-study-jobs" {
			for i := range o.list("rules") {
				rights = append(rights, o.text("rules", i, "apiGroups", 0)+"/"+o.text("rules", i, "resources", 0))
			}
		}
	}
	if !slices.Contains(rights, "kubeflow.org/pytorchjobs") {
		t.Errorf("the worker has rights for %q", rights)
	}
}

// Values of which nothing would come are refused, with the path that the user wrote.
func TestStudyJobsAreRefused(t *testing.T) {
	for want, set := range map[string][]string{
		"studies.jobs.team-b: the studies of this namespace are not run; add it to studies.namespaces, which has team-a": {
			`studies.namespaces=["team-a"]`, `studies.jobs={"team-b":{}}`,
		},
		"pools.default.kubejob.allowStudyJobs: no namespace may bring Jobs": {`pools.default={"kubejob":{"allowStudyJobs":true}}`},
		"pools.default.kubejob.allowStudyJobs: only Study resources can bring Jobs": {
			`studies.enabled=false`, `studies.jobs={"team-b":{}}`, `pools.default={"kubejob":{"allowStudyJobs":true}}`,
		},
		"/studies/kinds/JobSet": {`studies.namespaces=["team-a"]`, `studies.jobs={"team-a":{}}`,
			`studies.kinds={"JobSet":{"apiVersion":"jobset.x-k8s.io/v1alpha2","resource":"jobsets"}}`},
		"/studies/namespaces/0":                   {`studies.namespaces=["Team_A"]`},
		"/poolDefaults/resources/requests/memory": {`poolDefaults.resources={"requests":{"memory":"12Q"}}`},
		"/studies/jobs/team-a/podSecurity":        {`studies.namespaces=["team-a"]`, `studies.jobs={"team-a":{"podSecurity":"none"}}`},
	} {
		out, err := run(t, "helm", append([]string{"template", "f", chart, "--namespace=tuning"}, values(set...)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…\n%.200s", set, err, want, out)
		}
	}
}
