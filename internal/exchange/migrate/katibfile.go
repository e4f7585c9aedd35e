package migrate

import (
	"cmp"

	yaml "go.yaml.in/yaml/v4"
)

// katibFile is where Katib looks for metrics of a File collector without a path
// (pkg/apis/controller/common/v1beta1/common_types.go of Katib).
const katibFile = "/var/log/katib/metrics.log"

// tailScript runs a command and prints the lines of the file $0 as they come, so that they are among the
// output in which a pattern is searched. It ends as the command does, after all lines. It passes on
// SIGTERM, and needs only what POSIX says of sh, sed, wc, sleep, mkdir and dirname.
const tailScript = `file=$0
mkdir -p "$(dirname "$file")"; rm -f "$file" "$file.ended"
"$@" & program=$!
trap 'kill -TERM "$program"' TERM INT
{
  shown=0
  while :; do
    if [ -e "$file.ended" ]; then ended=yes; else ended=; fi
    if [ -e "$file" ]; then lines=$(($(wc -l < "$file"))); else lines=0; fi
    if [ "$lines" -gt "$shown" ]; then sed -n "$((shown + 1)),$lines"p "$file"; shown=$lines; fi
    if [ -n "$ended" ]; then [ ! -e "$file" ] || sed -n "$((shown + 1)),\$p" "$file"; break; fi
    sleep 1
  done
} & reader=$!
while :; do wait "$program"; code=$?; kill -0 "$program" 2>/dev/null || break; done
: > "$file.ended"
wait "$reader"
rm -f "$file.ended"
exit "$code"
`

// tailFile has the container print the metrics file of a File collector.
func (e *experimentSpec) tailFile(r *Result) {
	c := e.Collector
	if c == nil || c.Collector.Kind != "File" {
		return
	}
	path := cmp.Or(c.Source.File.Path, katibFile)
	container := find(&e.Template.Spec, e.Template.Container)
	command := field(container, "command")
	if command == nil || len(command.Content) == 0 {
		r.note("metrics are read from the program's output here, not from the file %s, and the container names no command that could be made "+
			"to print it: give it one, and import again", path)
		return
	}
	words := []*yaml.Node{text("sh"), text("-c"), text(tailScript), text(path)}
	words = append(words, command.Content...)
	if args := field(container, "args"); args != nil {
		words = append(words, args.Content...)
		args.Content = nil
	}
	command.Content, command.Style = words, 0
	r.note("the command is inside of a small shell script, which prints the file %s as it grows: the container needs sh. "+
		"Lines of that form which the program prints itself count too. Without containers, trials that run at once on one machine need files "+
		"of their own", path)
}

// text returns a text as a node.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}
