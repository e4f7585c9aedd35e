package jobpolicy

import (
	"encoding/json"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	strict "sigs.k8s.io/json"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
)

// findings collects problems.
type findings struct{ list []study.Problem }

func (f *findings) add(field, format string, args ...any) {
	f.list = append(f.list, study.Problem{Path: jobshape.Path + field, Message: fmt.Sprintf(format, args...)})
}

// addIf is add if something is wrong.
func (f *findings) addIf(wrong bool, field, format string, args ...any) {
	if wrong {
		f.add(field, format, args...)
	}
}

// err returns a *study.Problems, or nil.
func (f *findings) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &study.Problems{List: f.list}
}

// decode decodes a manifest. It returns nil, and reports why, if it is no Job that runs its program
// once.
func (f *findings) decode(manifest []byte) *batchv1.Job {
	job := &batchv1.Job{}
	if !f.shaped(jobshape.CheckManifest(manifest)) || !f.typed("", manifest, job) {
		return nil
	}
	return job
}

// shaped adds the problems of an error of package jobshape, and reports whether there were none.
func (f *findings) shaped(err error) bool {
	if problems, ok := errors.AsType[*study.Problems](err); ok {
		f.list = append(f.list, problems.List...)
	} else if err != nil {
		f.add("", "%v", err)
	}
	return err == nil
}

// typed decodes JSON into Kubernetes' own type, and reports whether that has all of its fields. What
// jobshape accepts, it accepts, unless the table of jobshape is of another version.
func (f *findings) typed(field string, text []byte, into any) bool {
	unknown, err := strict.UnmarshalStrict(text, into)
	for _, err := range append(unknown, err) {
		f.addIf(err != nil, field, "is not as Kubernetes defines it: %v", err)
	}
	return err == nil && len(unknown) == 0
}

// plain checks that a pod template's metadata has only labels and annotations.
func plain(m *metav1.ObjectMeta) bool {
	kept := metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
	a, errA := json.Marshal(kept)
	b, errB := json.Marshal(m)
	return errA == nil && errB == nil && string(a) == string(b)
}
