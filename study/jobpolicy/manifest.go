package jobpolicy

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// shaped adds the problems of an error of package jobshape, and reports whether there were none.
func (f *findings) shaped(err error) bool {
	if problems, ok := errors.AsType[*study.Problems](err); ok {
		f.list = append(f.list, problems.List...)
	} else if err != nil {
		f.add("", "%v", err)
	}
	return err == nil
}

// plain checks that a pod template's metadata has only labels and annotations.
func plain(m *metav1.ObjectMeta) bool {
	kept := metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
	a, errA := json.Marshal(kept)
	b, errB := json.Marshal(m)
	return errA == nil && errB == nil && string(a) == string(b)
}
