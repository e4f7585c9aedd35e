// Package inject chooses the implementations: which optimisers exist, which one is the
// default, and how study files are parsed.
package inject

import (
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/sobol"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
)

// ParseStudy parses a study file and checks it against the known algorithms and rules for
// early stopping, that its trials can be sent to workers, and that its Job, if it has one, is
// as Kubernetes defines it. The error is a
// *study.Problems that uses the given name of the file.
func ParseStudy(name string, content []byte) (*study.Study, error) {
	s, err := file.Parse(content, append(StudyOptions(), file.WithFile(name))...)
	if err != nil {
		return nil, err
	}
	if err := checkTrial(s); err != nil {
		if problems, ok := errors.AsType[*study.Problems](err); ok {
			problems.File = name
		}
		return nil, err
	}
	return s, nil
}

// checkTrial checks what file.Parse cannot: what Kubernetes and the messages to workers
// accept.
func checkTrial(s *study.Study) error {
	if j := s.Spec.Trial.Job; j != nil {
		if err := jobshape.Check(j); err != nil {
			return err
		}
	}
	return messaging.CheckSize(s)
}

// StudyOptions returns the options of file.Parse for the known algorithms and rules.
func StudyOptions() []file.Option {
	checks := map[string]file.AlgorithmCheck{}
	for _, name := range registry.Names() {
		checks[name] = func(settings map[string]any) error { return placed(registry.Check(name, settings)) }
	}
	rules := map[string]file.StoppingCheck{}
	for _, name := range pruner.Names() {
		rules[name] = func(e *study.EarlyStopping) error {
			_, err := pruner.New(*e)
			return placed(err)
		}
	}
	return []file.Option{
		file.WithAlgorithms(checks), file.WithDefaultAlgorithm(registry.Default), file.WithSeveralObjectives(registry.Several()),
		file.WithLimits(registry.Limits()), file.WithEarlier(registry.Earlier()), file.WithForecast(registry.Forecast()),
		file.WithEarlyStopping(rules),
	}
}

// placed converts errors of settings to file.SettingErrors, which are reported at the
// setting's place in the file.
func placed(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *setting.Error:
		if e.Known != nil {
			return &file.SettingError{Name: e.Name, Known: e.Known}
		}
		return &file.SettingError{Name: e.Name, Message: fmt.Sprintf("%v is not accepted; want %s", e.Value, e.Reason)}
	case interface{ Unwrap() []error }:
		return errors.Join(each.Of(e.Unwrap(), placed)...)
	case interface{ Unwrap() error }:
		return placed(e.Unwrap())
	default:
		return err
	}
}

// Coordinator adds the optimisers to a coordinator's options.
func Coordinator(o coordinator.Options) coordinator.Options {
	o.NewOptimizer = NewOptimizer
	o.NewFallback = sobol.New
	return o
}

// NewOptimizer returns the optimiser of a study.
func NewOptimizer(a study.Algorithm) (optimizer.Optimizer, error) {
	return registry.New(a.Name, a.Settings)
}
