package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/study"
)

// learnFlag lets a command that begins a study name files from which the study learns.
func learnFlag(c *cobra.Command, files *[]string) {
	c.Flags().StringArrayVar(files, "learn-from", nil, "`FILE` of an earlier study's trials: csv, json, jsonl or parquet. May be given "+
		"several times")
}

// learnFrom returns the study with the trials of files that it learns from, beside those that its own file names.
// name is that file's, for messages.
func (a *app) learnFrom(name string, s *study.Study, files []string) (*study.Study, error) {
	filled := *s
	shares, left := len(files), study.MaxEarlierTrials
	for i := range s.Spec.LearnFrom {
		if e := &s.Spec.LearnFrom[i]; e.Trials == nil {
			shares++ // the coordinator reads it
		} else {
			left -= len(e.Trials)
		}
	}
	for _, path := range files {
		trials, skipped, err := earlierTrials(path, &s.Spec)
		if err != nil {
			return nil, importError(path, err)
		}
		e := study.NewEarlier(sourceName(path), s.Spec.FirstObjective().Direction, trials, max(1, left/shares))
		if why := e.Useless(s.Spec.Parameters); why != "" {
			return nil, importError(path, fmt.Errorf("%w: %s", migrate.ErrSource, why))
		}
		note := fmt.Sprintf("%s: the study learns from %d of %d trials", path, len(e.Trials), len(trials)+len(skipped))
		if lacking := e.Lacking(s.Spec.Parameters); len(lacking) > 0 {
			note += ", which have no " + strings.Join(lacking, ", ")
		}
		if len(skipped) > 0 {
			note += fmt.Sprintf("; %d left out, such as %s: %s", len(skipped), skipped[0].Place, skipped[0].Why)
		}
		fmt.Fprintln(a.Stderr, note)
		filled.Spec.AddEarlier(e)
	}
	text, err := json.Marshal(&filled)
	if err != nil {
		return nil, fmt.Errorf("write the study: %w", err)
	}
	return inject.ParseStudy(name, text) // which checks it with what was added
}

// withEarlier is learnFrom for the text of a study file.
func (a *app) withEarlier(name, text string, files []string) (string, error) {
	s, err := inject.ParseStudy(name, []byte(text))
	if err != nil {
		return "", err
	}
	if s, err = a.learnFrom(name, s, files); err != nil {
		return "", err
	}
	filled, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write the study: %w", err)
	}
	return string(filled), nil
}

// sourceName is the name of a file as an earlier study. It has the file's ending, as no study's name can.
func sourceName(path string) string { return filepath.Base(path) }

// earlierTrials reads the trials of a file.
func earlierTrials(path string, spec *study.Spec) (_ []study.EarlierTrial, _ []migrate.Skipped, err error) {
	if len(spec.Several) > 0 {
		return nil, nil, fmt.Errorf("%w: the study has several objectives: learn with one", migrate.ErrSource)
	}
	form := trialFormats[strings.ToLower(filepath.Ext(path))]
	if form == "" || form == "optuna" {
		return nil, nil, fmt.Errorf("%w: want a file that ends with .csv, .json, .jsonl, .ndjson or .parquet", migrate.ErrSource)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", migrate.ErrSource, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return migrate.Earlier(form, f, spec)
}

// learned checks that a study that has begun learns from the files. They are not read again.
func learned(begun *study.Study, files []string) error {
	for _, path := range files {
		if !slices.ContainsFunc(begun.Spec.LearnFrom, func(e study.Earlier) bool { return e.Study == sourceName(path) }) {
			return fmt.Errorf("%w:\n  --learn-from %s: the study has begun without it", local.ErrIncompatible, path)
		}
	}
	return nil
}
