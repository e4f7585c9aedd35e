package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
)

// stateFlag adds --state to a command that only reads. Its studies are then those
// of fantasia run.
func (r *remote) stateFlag(c *cobra.Command) {
	if r.cluster != nil {
		return
	}
	help := "read the state at `PATH`, of fantasia run, serve or a Go program, not a server"
	if strings.Contains(c.Use, " STUDY") {
		help += "; STUDY may then be left out"
	}
	c.Flags().StringVar(&r.state, "state", "", help)
}

// reads completes a command that reads a study of a server or of a state directory.
func (r *remote) reads(c *cobra.Command) *cobra.Command {
	c.Args, c.ValidArgsFunction = r.argumentsOrState, r.completeStudy
	r.stateFlag(c)
	return c
}

// local makes a client of what answers for a state directory.
func (r *remote) local(cmd *cobra.Command) (client service, done func(), err error) {
	if err := readable(cmd, r.state); err != nil {
		return nil, nil, err
	}
	var c *local.Connection
	if r.damaged {
		c, r.lost, err = local.ConnectDamaged(r.state)
	} else {
		c, err = local.Connect(cmd.Context(), r.state)
	}
	if errors.Is(err, local.ErrNoState) {
		return nil, nil, exitWith(ExitUsage, err)
	}
	if err != nil {
		return nil, nil, err
	}
	r.idle = c.Idle
	done = func() { _ = c.Close() } // nothing was written
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: c.Transport}, "http://state"), done, nil
}

// studyIn is the study that a command is about: what its arguments name, or, with
// --state, the only one of a directory. The directory may also be the one above,
// .fantasia, with the study's name. rest are the other arguments.
func (r *remote) studyIn(cmd *cobra.Command, args []string, others int) (name string, rest []string, err error) {
	if r.cluster != nil {
		name, err = r.inCluster(cmd, args[0])
		return name, args[1:], err
	}
	if r.state == "" {
		return args[0], args[1:], nil
	}
	if len(args) > others {
		name, args = args[0], args[1:]
	}
	if _, err := studyName(cmd, cmp.Or(name, "any")); err != nil {
		return "", nil, err
	}
	if err := readable(cmd, r.state); err != nil {
		return "", nil, err
	}
	states, err := local.States(r.state)
	if err != nil {
		return "", nil, exitWith(ExitUsage, err)
	}
	if inner := filepath.Join(r.state, name); name != "" && slices.Contains(states, inner) {
		states = []string{inner}
	}
	if len(states) > 1 {
		return "", nil, usagef(cmd, "--state %s has %d studies; name one, or give its own directory, such as %s", r.state, len(states), states[0])
	}
	r.state = states[0]
	if name != "" {
		return name, args, nil
	}
	page, err := ask(cmd, r, service.ListStudies, &fantasiav1.ListStudiesRequest{PageSize: 2})
	if err != nil {
		return "", nil, err
	}
	switch len(page.GetStudies()) {
	case 0:
		return "", nil, exitWith(ExitUsage, fmt.Errorf("read %s: %w", r.state, local.ErrNoState))
	case 2:
		return "", nil, usagef(cmd, "--state %s has several studies; name one", r.state)
	}
	return strings.TrimPrefix(page.GetStudies()[0].GetName(), "studies/"), args, nil
}

// argumentsOrState checks the number of a command's arguments, of which the first,
// a study, may be left out where --state is given.
func (r *remote) argumentsOrState(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Use)[1:]
	switch {
	case r.state == "" || len(args) >= len(words):
		return arguments(cmd, args)
	case len(args) < len(words)-1:
		return fmt.Errorf("%s is missing; want %s %s", words[len(args)+1], cmd.CommandPath(), strings.Join(words, " "))
	}
	return nil
}

// stateOf finds the state of a study that a file describes: .fantasia/NAME in the
// working directory, or, where there is none, beside the study file. note is for
// the user, "" where there is nothing to say.
func stateOf(file, name string) (state, note string) {
	here := display.DefaultState(name)
	if kept(here) {
		return here, ""
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return here, ""
	}
	if beside := short(filepath.Join(dir, here)); kept(beside) {
		return beside, "no state of study " + name + " here: continuing the one beside its file, in " + beside
	}
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		if other := short(filepath.Join(above, here)); kept(other) {
			return here, fmt.Sprintf("no state of study %s here: starting a new one in %s. There is one in %s; continue it with --state %s", name,
				here, other, other)
		}
		if above == filepath.Dir(above) {
			return here, ""
		}
	}
}

func kept(state string) bool {
	states, err := local.States(state)
	return err == nil && states[0] == state
}

// short is a path relative to the working directory where that is shorter.
func short(path string) string {
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, path); err == nil && len(relative) < len(path) {
			return relative
		}
	}
	return path
}
