//go:build e2e && policies

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// nobodysPort is a port that no policy lets anybody reach.
const nobodysPort = "80"

// outside is a peer in another namespace, to which no policy applies: it stands for
// anywhere in the table.
const outside = "outside"

// strangers are what the table calls others: the labels of pods that are not of the
// release, and what of the release they may reach.
var strangers = map[string]struct {
	labels map[string]string
	may    []string // component:port
}{
	"metrics":  {map[string]string{"app": "metrics"}, []string{"coordinator:8080", "etcd:2381", "nats:8222", "worker of default:8081"}},
	"client":   {map[string]string{"fantasia.dev/api-client": "true"}, []string{"coordinator:8080"}},
	"training": {map[string]string{"fantasia.dev/pool": "training"}, []string{"nats:4222"}},
	"stranger": {map[string]string{"app": "stranger"}, nil},
}

// TestPolicies shows in a cluster that enforces NetworkPolicies that the chart's allow the
// connections of the table in docs/operate/kubernetes.md, and no others: pods with the labels of
// the release's components try all of them, first without and then with the policies. A
// real release then works under its policies.
func TestPolicies(t *testing.T) {
	network := newCluster(t)
	network.enforce()
	rig := &policyRig{cluster: network, away: newCluster(t)}
	rig.render()
	rig.readTable()
	rig.start()

	rig.expect("without policies", func(edge) bool { return true })
	for _, p := range rig.policies {
		if _, err := network.kube.NetworkingV1().NetworkPolicies(network.namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rig.expect("with policies", rig.allowed)

	c := newCluster(t)
	c.chart("install", fmt.Sprintf(`
image: {tag: %[1]q}
pools: {default: {image: "%[2]se2e:%[1]s", allowStudyCommands: true, slots: 2}}
networkPolicy: {dnsPorts: [53, 1053]} # where CoreDNS listens in a cluster of kind, and in one without root
`, c.tag, repository))
	c.create(startStudy)
	c.completed(2*time.Minute, "start")
	c.allRun(time.Minute)
	c.helm("test", release, "--timeout", "3m")
}

// enforce runs kube-router's controller of policies on this machine, which must be the
// cluster's only node, until the test ends.
func (c *cluster) enforce() {
	c.t.Helper()
	nodes, err := c.kube.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(nodes.Items) != 1 || !isHere(nodes.Items[0].Status.Addresses) {
		c.t.Fatalf("the cluster has %d nodes: policies are tested on a cluster whose only node is this machine", len(nodes.Items))
	}
	program := filepath.Join(root, "bin/tools/kube-router")
	router := testenv.Start(c.t, program, []string{
		"--kubeconfig", os.Getenv("KUBECONFIG"), "--hostname-override", nodes.Items[0].Name,
		"--run-firewall=true", "--run-router=false", "--run-service-proxy=false", "--health-port=0", "--v=1",
	}, nil, nil)
	c.t.Cleanup(func() {
		defer removeRules(c.t) // even if it does not end
		if state := router.State(); state != "" {
			c.t.Errorf("kube-router has ended by itself: %s", state)
			return
		}
		router.Stop()
	})
}

// isHere reports whether one of a node's addresses is this machine's.
func isHere(addresses []corev1.NodeAddress) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addresses, func(a corev1.NodeAddress) bool {
		return slices.ContainsFunc(own, func(o net.Addr) bool {
			ip, _, err := net.ParseCIDR(o.String())
			return err == nil && ip.String() == a.Address
		})
	})
}

// removeRules removes kube-router's chains and sets from this machine, and nothing else:
// its own clean-up needs programs of its other parts too.
func removeRules(t *testing.T) {
	t.Helper()
	ours := regexp.MustCompile(`KUBE-(ROUTER|POD-FW|NWPLCY)-\S+`)
	rules, err := exec.Command("iptables-save", "--table", "filter").Output()
	if err != nil {
		t.Errorf("iptables-save: %v", err)
		return
	}
	var jumps, flushes, chains strings.Builder
	for line := range strings.Lines(string(rules)) {
		chain, isChain := strings.CutPrefix(line, ":")
		switch rule, isRule := strings.CutPrefix(line, "-A "); {
		case isChain && ours.MatchString(strings.Fields(chain)[0]):
			fmt.Fprintf(&flushes, "-F %s\n", strings.Fields(chain)[0])
			fmt.Fprintf(&chains, "-X %s\n", strings.Fields(chain)[0])
		case isRule && !ours.MatchString(strings.Fields(rule)[0]) && ours.MatchString(rule):
			jumps.WriteString("-D " + rule)
		}
	}
	restore := exec.Command("iptables-restore", "--noflush")
	restore.Stdin = strings.NewReader("*filter\n" + jumps.String() + flushes.String() + chains.String() + "COMMIT\n")
	if out, err := restore.CombinedOutput(); err != nil {
		t.Errorf("iptables-restore: %v\n%s", err, out)
	}
	sets, err := exec.Command("ipset", "list", "-name").Output()
	if err != nil {
		t.Errorf("ipset: %v", err)
	}
	for _, set := range strings.Fields(string(sets)) {
		if regexp.MustCompile(`^(TMP-)?(KUBE-SRC-|KUBE-DST-|kube-router)`).MatchString(set) {
			if out, err := exec.Command("ipset", "destroy", set).CombinedOutput(); err != nil {
				t.Errorf("ipset destroy %s: %v\n%s", set, err, out)
			}
		}
	}
}

// edge is a kind of connection: between pods of two kinds, to a port.
type edge struct{ from, to, port string }

// policyRig is a namespace with peers in place of a release's pods, and another one with
// the peer outside.
type policyRig struct {
	*cluster
	away       *cluster
	policies   []*networkingv1.NetworkPolicy
	components map[string]map[string]string // labels of the release's pods
	table      map[edge]bool                // of docs/operate/kubernetes.md; a port each
	ports      []string
	address    map[string]string // of what is called, by its kind
}

// render renders the chart as the table's title says, and takes its policies and the
// labels of its pods.
func (r *policyRig) render() {
	r.t.Helper()
	text := r.helm("template", release, filepath.Join(root, "deploy/helm/fantasia"),
		"--set-json", `pools.default={"image":"train:1","command":["train"]}`, "--set", "telemetry.otlpEndpoint=http://collector:4318",
		"--set-json", `networkPolicy.metricsFrom=[{"podSelector":{"matchLabels":{"app":"metrics"}}}]`)
	r.components = map[string]map[string]string{}
	all, err := documents([]byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, u := range all {
		switch u.GetKind() {
		case "NetworkPolicy":
			p := &networkingv1.NetworkPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
				r.t.Fatal(err)
			}
			r.policies = append(r.policies, p)
		case "Pod":
			r.add(u.GetLabels())
		case "Deployment", "StatefulSet", "Job":
			labels, _, err := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
			if err != nil {
				r.t.Fatal(err)
			}
			r.add(labels)
		}
	}
}

// add adds the component that pods with the labels are of, under its name in the table.
func (r *policyRig) add(labels map[string]string) {
	name := labels["app.kubernetes.io/component"]
	if pool := labels["fantasia.dev/pool"]; pool != "" {
		name += " of " + pool
	}
	r.components[name] = labels
}

// readTable reads the table of connections of docs/operate/kubernetes.md.
func (r *policyRig) readTable() {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/operate/kubernetes.md"))
	if err != nil {
		r.t.Fatal(err)
	}
	_, rows, found := strings.Cut(string(text), "| from | to | ports |\n| --- | --- | --- |\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	if !found {
		r.t.Fatal("docs/operate/kubernetes.md has no table of connections")
	}
	r.table = map[edge]bool{}
	ports := map[string]bool{nobodysPort: true}
	for row := range strings.SplitSeq(rows, "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			r.t.Fatalf("a row of the table has %d cells: %s", len(cells), row)
		}
		for port := range strings.SplitSeq(cells[2], ", ") {
			r.table[edge{cells[0], cells[1], port}] = true
			ports[port] = true
		}
	}
	r.ports = slices.Sorted(maps.Keys(ports))

	// What the strangers may reach is what the table says of others.
	others, theirs := map[string]bool{}, map[string]bool{}
	for e := range r.table {
		if e.from == "others" {
			others[e.to+":"+e.port] = true
		}
	}
	for _, s := range strangers {
		for _, to := range s.may {
			theirs[to] = true
		}
	}
	if !maps.Equal(others, theirs) {
		r.t.Fatalf("the table lets others reach %v, the test %v", slices.Sorted(maps.Keys(others)), slices.Sorted(maps.Keys(theirs)))
	}
}

// allowed reports whether the table has a connection.
func (r *policyRig) allowed(e edge) bool {
	if s, ok := strangers[e.from]; ok {
		return e.to == outside || slices.Contains(s.may, e.to+":"+e.port) // no policy holds them back
	}
	if e.to == outside {
		return r.table[edge{e.from, "anywhere", e.port}]
	}
	return r.table[e]
}

// shared reports whether kube-router lets a connection through that the table does not have.
// It puts both directions of a policy into one chain of rules: what pods of a component may
// send anywhere, it also lets them send to each other.
func (r *policyRig) shared(e edge) bool {
	return e.from == e.to && r.table[edge{e.from, "anywhere", e.port}]
}

// start starts two peers in place of each component, one that calls and one that is called,
// the strangers, which call, and the peer outside.
func (r *policyRig) start() {
	r.t.Helper()
	r.address = map[string]string{}
	for name, labels := range r.components {
		r.peer(caller(name), labels)
		r.peer(callee(name), labels)
	}
	for name, s := range strangers {
		r.peer(caller(name), s.labels)
	}
	away := *r
	away.cluster = r.away
	away.peer(outside, nil)
	r.address[outside] = r.running(r.away, outside)
	for name := range r.components {
		r.address[name] = r.running(r.cluster, callee(name))
		r.running(r.cluster, caller(name))
	}
	for name := range strangers {
		r.running(r.cluster, caller(name))
	}
}

// caller and callee name the two peers in place of a component.
func caller(kind string) string { return strings.ReplaceAll(kind, " ", "-") + "-calls" }
func callee(kind string) string { return strings.ReplaceAll(kind, " ", "-") + "-is-called" }

// peer creates a pod that listens on all ports.
func (r *policyRig) peer(name string, labels map[string]string) {
	r.t.Helper()
	pod := harmless()
	pod.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: labels}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}}
	pod.Spec.Containers[0].Image = repository + "e2e:" + r.tag
	pod.Spec.Containers[0].Command = append([]string{"/usr/local/bin/peer", "listen"}, r.ports...)
	if _, err := r.kube.CoreV1().Pods(r.namespace).Create(r.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// running waits until a pod runs, and returns its address.
func (r *policyRig) running(in *cluster, name string) (address string) {
	r.t.Helper()
	r.await(2*time.Minute, func(ctx context.Context) error {
		p, err := r.kube.CoreV1().Pods(in.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if address = p.Status.PodIP; !ready(*p) || address == "" {
			return fmt.Errorf("the pod %s is %s", name, p.Status.Phase)
		}
		return nil
	})
	return address
}

// expect waits until exactly the connections work that may.
func (r *policyRig) expect(when string, may func(edge) bool) {
	r.t.Helper()
	var all, open, within int
	r.await(3*time.Minute, func(ctx context.Context) error {
		all, open, within = 0, 0, 0
		var wrong []string
		for _, from := range slices.Sorted(maps.Keys(r.callers())) {
			reached, err := r.call(ctx, from)
			if err != nil {
				return err
			}
			for to := range r.address {
				for _, port := range r.ports {
					e := edge{from, to, port}
					all++
					if reached[e] {
						open++
						if to != outside {
							within++
						}
					}
					if reached[e] != may(e) && !(reached[e] && r.shared(e)) {
						wrong = append(wrong, fmt.Sprintf("%s to %s:%s works: %v, want %v", from, to, port, reached[e], may(e)))
					}
				}
			}
		}
		if len(wrong) > 0 {
			slices.Sort(wrong)
			return fmt.Errorf("%d of %d kinds of connections are not as the table says:\n%s", len(wrong), all, strings.Join(wrong, "\n"))
		}
		return nil
	})
	r.timed("%s %d of %d kinds of connections work, %d of them to the release", when, open, all, within)
}

func (r *policyRig) callers() map[string]bool {
	all := map[string]bool{}
	for name := range r.components {
		all[name] = true
	}
	for name := range strangers {
		all[name] = true
	}
	return all
}

// call connects from a peer to all ports of all that are called, and returns what works.
func (r *policyRig) call(ctx context.Context, from string) (map[edge]bool, error) {
	args := []string{"exec", "--namespace", r.namespace, caller(from), "--", "/usr/local/bin/peer", "call"}
	of := map[string]edge{}
	for to, address := range r.address {
		for _, port := range r.ports {
			e := edge{from, to, port}
			of[net.JoinHostPort(address, port)] = e
		}
	}
	out, err := exec.CommandContext(ctx, "kubectl", append(args, slices.Sorted(maps.Keys(of))...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("call from %s: %w", from, err)
	}
	reached := map[edge]bool{}
	for _, line := range strings.Fields(string(out)) {
		reached[of[line]] = true
	}
	return reached, nil
}
