package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/app/kubeforward"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/study"
)

const backupLong = `Writes all studies and trials to a file: everything that the coordinators keep in
etcd, as it was at one moment. Studies may go on meanwhile.

The file is read from etcd, as a coordinator reads it, or with --state from the
state directory of fantasia run or serve. It contains what study files contain,
such as commands and their variables, so only you may read it.`

const restoreLong = `Writes a backup into an empty etcd, or with --state into the state directory of
fantasia run or serve. The file is checked first. Stop all coordinators, restore, and
start them again: the studies go on from the moment of the backup.

NATS may be an old one. What its streams still hold of the trials in the backup is
read again; results of trials that began after the backup are archived, because
nobody knows their parameters any more. Workers may keep running.

A study that came from a Kubernetes resource goes on only if that resource, with its
UID, is in the cluster of your kubeconfig, where it needs the right to get studies. Otherwise the
study is restored as stopped, with its trials. With --state there is no cluster, so all of them are
stopped. The command lists these studies first; --dry-run does nothing else.

A restore that is interrupted leaves an etcd in which no coordinator leads. Run it
again with --force, which replaces what etcd holds.`

const (
	// reachTime limits how long backup and restore wait for etcd at first.
	reachTime = 10 * time.Second
	// backupTries is how often a backup begins again because etcd was compacted.
	backupTries = 3
)

// store is where backup and restore find the ledger.
type store struct {
	etcd   []string
	access coordinatornode.EtcdAccess
	state  string
}

func (s *store) flags(c *cobra.Command, stateHelp string) {
	c.Flags().StringSliceVar(&s.etcd, "etcd", []string{"http://localhost:2379"}, "addresses of etcd")
	s.access.Flags(c.Flags())
	c.Flags().StringVar(&s.state, "state", "", stateHelp)
}

// open returns a client of the ledger's etcd.
func (s *store) open(cmd *cobra.Command, read bool) (client *clientv3.Client, done func() error, err error) {
	if s.state != "" && cmd.Flags().Changed("etcd") {
		return nil, nil, usagef(cmd, "--etcd and --state: set only one")
	}
	if err := directory(cmd, s.state); err != nil {
		return nil, nil, err
	}
	switch {
	case s.state != "" && read:
		client, done, err = local.ReadEtcd(cmd.Context(), s.state)
	case s.state != "":
		client, done, err = local.OpenEtcd(cmd.Context(), s.state)
	default:
		config, errConfig := s.access.Config(s.etcd, slog.New(slog.DiscardHandler))
		if errConfig != nil {
			return nil, nil, usageError(cmd, errConfig)
		}
		if client, err = ledger.Connect(s.etcd, config); err == nil {
			done = client.Close
		}
	}
	switch {
	case errors.Is(err, local.ErrNoState):
		return nil, nil, exitWith(ExitUsage, err)
	case errors.Is(err, local.ErrInUse):
		return nil, nil, exitWith(ExitInUse, err)
	case err != nil:
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), reachTime)
	defer cancel()
	if err := ledger.New(client, ledger.Options{}).Ping(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("no answer from etcd at %q: %w", client.Endpoints(), err), done())
	}
	return client, done, nil
}

func newBackupCommand(a *app) *cobra.Command {
	var s store
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all studies and trials to a file",
		Long:  backupLong,
		Example: `  fantasia backup studies.backup --etcd http://localhost:2379
  fantasia backup digits.backup --state .fantasia/digits`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			client, done, err := s.open(cmd, true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			return a.backup(cmd.Context(), ledger.New(client, ledger.Options{}), args[0])
		},
	}
	s.flags(c, "read the state `DIRECTORY` of fantasia run or serve instead of --etcd")
	return c
}

// backup writes the file, which appears once it is complete.
func (a *app) backup(ctx context.Context, l *ledger.Ledger, file string) error {
	f, err := durable.Create(file, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() { _ = f.Cleanup() }() // does nothing after Commit
	var h backup.Header
	var c ledger.Contents
	for i := 1; ; i++ {
		h, c, err = backup.Write(ctx, l, f, a.Version)
		if i == backupTries || !errors.Is(err, ledger.ErrCompacted) {
			break
		}
		_, err = f.Seek(0, io.SeekStart)
		if err = errors.Join(err, f.Truncate(0)); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	if err == nil {
		err = f.Commit()
	}
	if err != nil {
		return fmt.Errorf("back up to %s: %w", file, err)
	}
	return say(a.Stdout, "%s written: %v, at revision %d of etcd", file, c, h.Revision)
}

// restoring is a call of fantasia restore.
type restoring struct {
	store
	cluster       kubeforward.Cluster
	force, dryRun bool
}

func newRestoreCommand(a *app) *cobra.Command {
	var r restoring
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Write a backup into an empty etcd",
		Long:  restoreLong,
		Example: `  fantasia restore studies.backup --etcd http://localhost:2379
  fantasia restore digits.backup --state .fantasia/digits
  fantasia restore studies.backup --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			f, err := os.Open(args[0])
			if err != nil {
				return exitWith(ExitUsage, fmt.Errorf("read the backup: %w", err))
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			switch err := a.restore(cmd, &r, f); {
			case errors.Is(err, backup.ErrNotEmpty):
				return fmt.Errorf("restore %s: %w; --force replaces it", args[0], err)
			case err != nil:
				return fmt.Errorf("restore %s: %w", args[0], err)
			}
			return nil
		},
	}
	r.store.flags(c, "restore into the state `DIRECTORY` of fantasia run or serve instead of --etcd")
	c.Flags().BoolVar(&r.force, "force", false, "delete what etcd holds already, and restore")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "only say what would be restored")
	c.Flags().StringVar(&r.cluster.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster with the studies' resources (default: "+
		"$KUBECONFIG, or ~/.kube/config)")
	c.Flags().StringVar(&r.cluster.Context, "context", "", "context of the kubeconfig file (default: the current one)")
	return c
}

// restore restores a backup, and tells what becomes of the studies of resources before it
// changes anything.
func (a *app) restore(cmd *cobra.Command, r *restoring, f io.ReadSeeker) (err error) {
	h, studies, err := backup.Inspect(cmd.Context(), f)
	if err != nil {
		return err
	}
	stops, err := r.orphans(cmd.Context(), studies)
	if err != nil {
		return err
	}
	for _, line := range fates(studies, stops) {
		if err := say(a.Stdout, "%s", line); err != nil {
			return err
		}
	}
	if r.dryRun {
		return say(a.Stdout, "studies in the backup of %s: %d; nothing was changed", h.Created.Local().Format(time.DateTime), len(studies))
	}
	client, done, err := r.open(cmd, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	l := ledger.New(client, ledger.Options{})
	h, c, err := backup.Restore(cmd.Context(), client, l, f, backup.Options{Force: r.force, Change: coordinator.StopStudies(l, stops)})
	if err != nil {
		return err
	}
	next := "start the coordinators, and the studies go on"
	if r.state != "" {
		next = "the same fantasia run or serve goes on"
	}
	return say(a.Stdout, "%v restored, as of %s: %s", c, h.Created.Local().Format(time.DateTime), next)
}

// orphans returns why studies of a backup must not go on, by their ids: they came from resources
// that are not there.
func (r *restoring) orphans(ctx context.Context, studies []ledger.Summary) (map[string]string, error) {
	stops := map[string]string{}
	for i := range studies {
		s := &studies[i].Study
		namespace, name, ok := resourceOf(s)
		if !ok || studies[i].Status.State != study.Running {
			continue
		}
		if r.state != "" {
			stops[s.ID] = fmt.Sprintf("restored from a backup into a state directory, where its resource %s/%s is not", namespace, name)
			continue
		}
		found, err := r.cluster.Study(ctx, namespace, name)
		if err != nil && !errors.Is(err, kubeforward.ErrNoStudy) {
			return nil, fmt.Errorf("study %s came from a Kubernetes resource; look for it: %w", s.Definition.Metadata.Name, err)
		}
		// A resource that only has the same name is another one, since it has another UID.
		if err != nil || record.ResourceID(string(found.GetUID()), found.GetCreationTimestamp().Time) != s.ID {
			stops[s.ID] = fmt.Sprintf("restored from a backup, but its resource %s/%s was deleted since", namespace, name)
		}
	}
	return stops, nil
}

// resourceOf returns the namespace and the name of the resource that a study came from. It returns
// false if it came from none.
func resourceOf(s *record.Study) (namespace, name string, ok bool) {
	return strings.Cut(s.Definition.Metadata.Name, ".")
}

// fates tell, one a line, what becomes of the running studies that came from resources.
func fates(studies []ledger.Summary, stops map[string]string) (lines []string) {
	for i := range studies {
		s := &studies[i]
		if _, _, ok := resourceOf(&s.Study); !ok || s.Status.State != study.Running {
			continue
		}
		fate := "goes on, since its resource is there"
		if reason := stops[s.Study.ID]; reason != "" {
			fate = "is stopped: " + reason
		}
		lines = append(lines, fmt.Sprintf("study %s, id %s, %d trials: %s", s.Study.Definition.Metadata.Name, s.Study.ID, s.Status.Trials, fate))
	}
	return lines
}
