// Package jobpolicy says which templates of Jobs, and of other kinds that the operator allows, the
// studies of a namespace may bring, and checks them. Pods are checked against the Pod Security Standards by Kubernetes'
// own code. The leader checks a template before it accepts the study, and a worker
// checks each Job before it creates it.
package jobpolicy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
)

// Any stands for every service account, or for every priority class.
const Any = "*"

// MaxNamespaces is the largest number of namespaces with policies: a worker watches each
// of them.
const MaxNamespaces = 200

// Policies hold the policy of each namespace whose studies may bring Jobs. The studies
// of other namespaces may bring none.
type Policies map[string]Policy

// Policy is what the Jobs of a namespace may be.
type Policy struct {
	// PodSecurity is the Pod Security Standard that pods must meet: privileged, baseline
	// or restricted. Empty means baseline.
	PodSecurity string `yaml:"podSecurity"`
	// ServiceAccounts are the accounts that pods may run as; Any means all of the
	// namespace's. Empty means the account default.
	ServiceAccounts []string `yaml:"serviceAccounts"`
	// PriorityClasses are the priority classes that pods may name; Any means all. Empty
	// means that pods name none.
	PriorityClasses []string `yaml:"priorityClasses"`
	// Kinds are the kinds of resources, besides Jobs, that studies may bring, by their names.
	Kinds map[string]Kind `yaml:"kinds"`
}

// Read reads a YAML file: a map from namespaces to policies.
func Read(path string) (Policies, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the policies for Jobs: %w", err)
	}
	var p Policies
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want a map from namespaces to policies, such as team-a: {podSecurity: baseline, serviceAccounts: "+
			"[default]}: %w", path, err)
	}
	if len(p) > MaxNamespaces {
		return nil, fmt.Errorf("%s: it has %d namespaces, at most %d are accepted", path, len(p), MaxNamespaces)
	}
	for _, namespace := range slices.Sorted(maps.Keys(p)) {
		if err := p[namespace].valid(namespace); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return p, nil
}

// valid returns what is wrong with the policy of a namespace.
func (p Policy) valid(namespace string) error {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("%q is not the name of a namespace; each namespace must be listed by its name", namespace)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Kinds)) {
		if err := p.Kinds[name].valid(); err != nil {
			return fmt.Errorf("%s.kinds.%s: %w", namespace, name, err)
		}
	}
	if p.PodSecurity == "" {
		return nil
	}
	if _, err := api.ParseLevel(p.PodSecurity); err != nil {
		return fmt.Errorf("%s.podSecurity: %q is not accepted; want baseline, restricted or privileged", namespace, p.PodSecurity)
	}
	return nil
}

// Namespaces returns the namespaces with policies, sorted.
func (p Policies) Namespaces() []string { return slices.Sorted(maps.Keys(p)) }

// level is the standard that pods must meet.
func (p Policy) level() api.Level {
	if p.PodSecurity == "" {
		return api.LevelBaseline
	}
	return api.Level(p.PodSecurity)
}

// allows reports whether a list contains a name, or Any.
func allows(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, Any)
}

// accounts are the service accounts that pods may run as.
func (p Policy) accounts() []string {
	if len(p.ServiceAccounts) == 0 {
		return []string{defaultAccount}
	}
	return p.ServiceAccounts
}

// defaultAccount is the service account of a pod that names none.
const defaultAccount = "default"

// listed returns a list of names for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
