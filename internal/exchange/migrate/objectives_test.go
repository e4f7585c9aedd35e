package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The value of a file counts for the metric that the file says it is of. A column that is named after the
// study's metric comes before it.
func TestValueOfAnotherMetric(t *testing.T) {
	loss := specOf(t, "val_loss", "name: x, type: float, min: 0, max: 9")
	several := specFrom(t, `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: s}
spec:
  objectives: [{metric: val_loss, direction: minimize}, {metric: size, direction: minimize}]
  parameters: [{name: x, type: float, min: 0, max: 9}]
  budget: {maxTrials: 10}
`)
	const refused = "cannot be imported: no column is the objective: the file's value is that of accuracy, not of val_loss: " +
		"want a column named val_loss, got "
	const lacks = ": it has no val_loss, as other trials of the file have: its value can be that of another metric"
	table := func(header, row string) []string { return points(CSV(strings.NewReader(header+"\n"+row+"\n"), loss)) }
	objects := func(text string) []string { return points(JSON(strings.NewReader(text), loss)) }
	for name, c := range map[string]struct{ got, want []string }{
		"metric:":         {table("x,value,metric:accuracy,metric:val_loss", "1,0.757,0.757,0.3"), []string{"0.3: map[x:1]"}},
		"bare":            {table("x,value,val_loss", "1,0.757,0.3"), []string{"0.3: map[x:1]"}},
		"bare, before":    {table("val_loss,x,value", "0.3,1,0.757"), []string{"0.3: map[x:1]"}},
		"only value":      {table("x,value,metric:accuracy", "1,0.757,0.757"), []string{"0.757: map[x:1]"}},
		"said":            {table("x,value,value:val_loss,metric:val_loss", "1,0.2,0.2,0.3"), []string{"0.2: map[x:1]"}},
		"said of another": {table("x,value,value:accuracy,metric:val_loss", "1,0.757,0.757,0.3"), []string{"0.3: map[x:1]"}},
		"an empty cell": {table("x,value,val_loss", "1,0.757,"), []string{
			"line 2" + lacks}},
		"an empty cell of the same": {table("x,value,val_loss", "1,0.3,\n2,0.2,0.2"), []string{"0.3: map[x:1]", "0.2: map[x:2]"}},
		"of several":                {table("x,value,value:accuracy,value:val_loss", "1,0.757,0.757,0.3"), []string{"0.3: map[x:1]"}},
		"of another only":           {table("x,value,value:accuracy", "1,0.757,0.757"), []string{refused + "x, value, value:accuracy"}},
		"MLflow":                    {table("params.x,metrics.accuracy,metrics.val_loss,value", "1,0.757,0.3,0.757"), []string{"0.3: map[x:1]"}},
		"object":                    {objects(`{"x":1,"value":0.757,"metrics":{"accuracy":0.757,"val_loss":0.3}}`), []string{"0.3: map[x:1]"}},
		"object, bare":              {objects(`{"x":1,"value":0.757,"val_loss":0.3}`), []string{"0.3: map[x:1]"}},
		"object, only":              {objects(`{"x":1,"value":0.757,"metrics":{"accuracy":0.757}}`), []string{"0.757: map[x:1]"}},
		"object, a list":            {objects(`{"x":1,"values":[0.757],"metrics":{"val_loss":0.3}}`), []string{"0.3: map[x:1]"}},
		"object, others":            {objects(`{"x":1,"values":[0.757, 3]}`), []string{"object 1: it has no value: want value or val_loss"}},
		"object, said":              {objects(`{"x":1,"objectives":["val_loss"],"value":0.2,"metrics":{"val_loss":0.3}}`), []string{"0.2: map[x:1]"}},
		"object, said of another": {objects(`{"x":1,"objectives":["accuracy"],"value":0.757,"metrics":{"val_loss":0.3}}`),
			[]string{"0.3: map[x:1]"}},
		"object, not of ours": {objects(`{"x":1,"objectives":["accuracy"],"value":0.757}`),
			[]string{"object 1: it has no value: want value or val_loss"}},
		"object, the second": {objects(`{"x":1,"objectives":["accuracy","val_loss"],"value":0.757,"values":[0.757,0.3]}`),
			[]string{"0.3: map[x:1]"}},
		"some lack it": {objects(`{"x":1,"value":0.757} {"x":2,"value":0.8,"metrics":{"val_loss":0.3}} {"x":3,"value":0.9}`),
			[]string{"0.3: map[x:2]", "object 1" + lacks, "object 3" + lacks}},
		"some lack it, and it is the same": {objects(`{"x":1,"value":0.2} {"x":2,"value":0.3,"metrics":{"val_loss":0.3}}`),
			[]string{"0.2: map[x:1]", "0.3: map[x:2]"}},
		"all say it": {objects(`{"x":1,"objectives":["val_loss"],"value":0.1,"metrics":{"val_loss":0.3}} ` +
			`{"x":2,"objectives":["val_loss"],"value":0.2}`), []string{"0.1: map[x:1]", "0.2: map[x:2]"}},
		"several, by place": {points(CSV(strings.NewReader("x,values_0,values_1,val_loss\n1,0.757,3,0.3\n"), several)),
			[]string{"0.3: map[x:1]"}},
		"several, objects": {points(JSON(strings.NewReader(`{"x":1,"values":[0.757,3],"metrics":{"val_loss":0.3}}`), several)),
			[]string{"0.3: map[x:1]"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
