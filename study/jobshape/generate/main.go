// Command generate writes the table of a Job's fields, study/jobshape/fields.txt, from Kubernetes'
// own types.
package main

import (
	"fmt"
	"os"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/fantasia-hpo/fantasia/study/jobshape/internal/table"
)

func main() {
	text, err := table.Of(reflect.TypeFor[batchv1.Job]())
	if err == nil {
		_, err = os.Stdout.WriteString(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
