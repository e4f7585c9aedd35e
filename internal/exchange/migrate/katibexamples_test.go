package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// katibExample has the traits of one of Katib's own examples, in examples/v1beta1 of
// https://github.com/kubeflow/katib at 05ab6f0, or 1403dc1, 0f5c9f9 and 1020c54 for mpijob, tfevent and trainjob. Names, kinds,
// fields and ranges are theirs, the rest is left out.
type katibExample struct {
	file, metric, kind string // kind of objective
	algorithm          string // the fields of spec.algorithm and what follows it
	collector          string
	parameters         string
	template           string // of the trial, before its spec
	words              string // in the command
	resource           string // the trial's; its %s is the container's command

	err   string   // what the import must say; empty if it must succeed
	job   string   // what it must say if the study shall bring the resource; empty if it does
	notes []string // parts of the notes
	check func(s *study.Spec) bool
}

const (
	katibLR        = `{name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.03"}}`
	katibLayers    = `{name: num-layers, parameterType: int, feasibleSpace: {min: "2", max: "5"}}`
	katibOptimizer = `{name: optimizer, parameterType: categorical, feasibleSpace: {list: [sgd, adam, ftrl]}}`
	katibEpochs    = `{name: num-epochs, parameterType: int, feasibleSpace: {min: "1", max: "1"}}`
	katibPlainJob  = `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{name: training-container, image: mnist, command: %s}], restartPolicy: Never}}}}`
	katibTraining  = `primaryContainerName: training-container`
	katibSucceeded = `successCondition: 'status.conditions.#(type=="Succeeded")#|#(status=="True")#'`
)

var katibExamples = []katibExample{
	{file: "hp-tuning/random.yaml", metric: "Validation-accuracy", algorithm: `{algorithmName: random}`,
		parameters: katibLR + "," + katibLayers + "," + katibOptimizer, template: katibTraining, resource: katibPlainJob,
		check: func(s *study.Spec) bool {
			return s.Algorithm.Name == "random" && len(s.Parameters) == 3 && s.Objective.Metric == "Validation_accuracy"
		}},
	{file: "hp-tuning/hyperband.yaml", metric: "Validation-accuracy",
		algorithm:  `{algorithmName: hyperband, algorithmSettings: [{name: resource_name, value: num-epochs}, {name: eta, value: "2"}, {name: r_l, value: "2"}]}`,
		parameters: katibLR + "," + katibEpochs, template: katibTraining, resource: katibPlainJob,
		check: func(s *study.Spec) bool {
			return s.EarlyStopping != nil && s.EarlyStopping.Name == "asha" && s.Algorithm.Name == "random"
		}},
	{file: "hp-tuning/simple-pbt.yaml", metric: "Validation-accuracy",
		algorithm:  "{algorithmName: pbt, algorithmSettings: [{name: n_population, value: '40'}]}\n  resumePolicy: FromVolume",
		parameters: `{name: lr, parameterType: double, feasibleSpace: {min: '0.0001', max: '0.02', step: '0.0001'}}`, template: katibTraining,
		resource: katibPlainJob,
		notes:    []string{"algorithm pbt became the default", "n_population=40 was left out"},
		check:    func(s *study.Spec) bool { return *s.Parameters[0].Step == 0.0001 }},
	{file: "hp-tuning/optuna-distribution.yaml", metric: "loss", kind: "minimize", algorithm: `{algorithmName: tpe}`,
		parameters: `{name: momentum, parameterType: double, feasibleSpace: {min: "0.001", max: "1", step: "0.1", distribution: uniform}}, {name: batch_size, parameterType: int, feasibleSpace: {min: "32", max: "64", distribution: logUniform}}`,
		template:   katibTraining, resource: katibPlainJob,
		check: func(s *study.Spec) bool { return s.Parameters[1].Scale == study.Log && s.Algorithm.Name == "tpe" }},
	{file: "early-stopping/median-stop-with-json-format.yaml", metric: "accuracy",
		algorithm: "{algorithmName: random}\n  earlyStopping: {algorithmName: medianstop, algorithmSettings: [{name: min_trials_required, " +
			"value: \"1\"}, {name: start_step, value: \"2\"}]}",
		collector:  `{source: {fileSystemPath: {path: /katib/mnist.json, kind: File, format: JSON}}, collector: {kind: File}}`,
		parameters: katibLR, template: "retain: true\n    " + katibTraining, resource: katibPlainJob,
		notes: []string{"prints the file /katib/mnist.json"},
		check: func(s *study.Spec) bool {
			return s.EarlyStopping.Name == "median" && strings.Contains(s.Trial.Metrics.Pattern, `"accuracy"`)
		}},
	{file: "metrics-collector/metrics-collection-strategy.yaml", metric: "Validation-accuracy", algorithm: `{algorithmName: tpe}`,
		parameters: katibLR + "," + katibOptimizer, template: katibTraining, resource: katibPlainJob,
		check: func(s *study.Spec) bool { return s.Objective.Take == study.TakeBest }},
	{file: "metrics-collector/tfevent-metrics-collector.yaml", metric: "accuracy_1", algorithm: `{algorithmName: random}`,
		collector:  `{source: {fileSystemPath: {path: /train, kind: Directory}}, collector: {kind: TensorFlowEvent}}`,
		parameters: katibLR, template: katibTraining, resource: katibPlainJob,
		notes: []string{"event files are read in /train by the sidecar", "the whole tag"},
		check: func(s *study.Spec) bool {
			return *s.Trial.Metrics == study.Metrics{Events: "/train"} && s.Objective.Metric == "accuracy_1"
		}},
	{file: "kubeflow-training-operator/tfjob-mnist-with-summaries.yaml", metric: "accuracy", algorithm: `{algorithmName: random}`,
		collector:  `{source: {fileSystemPath: {path: /mnist-with-summaries-logs/test, kind: Directory}}, collector: {kind: TensorFlowEvent}}`,
		parameters: katibLR, template: "primaryContainerName: tensorflow\n    primaryPodLabels: {training.kubeflow.org/replica-type: worker}",
		resource: `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: tensorflow, image: mnist, command: %s}]}}}}}}`,
		notes:    []string{"primaryPodLabels was left out"},
		check:    func(s *study.Spec) bool { return s.Trial.Metrics.Events == "/mnist-with-summaries-logs/test" }},
	{file: "kubeflow-training-operator/pytorchjob-mnist.yaml", metric: "loss", kind: "minimize", algorithm: `{algorithmName: random}`,
		parameters: katibLR + `, {name: momentum, parameterType: double, feasibleSpace: {min: "0.5", max: "0.9"}}`,
		template:   "primaryContainerName: pytorch",
		resource:   `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, image: mnist, command: %s}]}}}}}}`},
	{file: "kubeflow-training-operator/mxjob-byteps.yaml", metric: "Train-accuracy", algorithm: `{algorithmName: random}`,
		parameters: katibLR, template: "primaryContainerName: mxnet\n    primaryPodLabels: {training.kubeflow.org/replica-type: worker}",
		resource: `{apiVersion: kubeflow.org/v1, kind: MXJob, spec: {jobMode: MXTrain, mxReplicaSpecs: {Scheduler: {replicas: 1, template: {spec: {containers: [{name: mxnet, image: mxnet, command: [bpslaunch]}]}}}, Worker: {replicas: 1, template: {spec: {containers: [{name: mxnet, image: mxnet, command: %s}]}}}}}}`,
		notes:    []string{"primaryPodLabels was left out"}},
	{file: "kubeflow-training-operator/xgboostjob-lightgbm.yaml", metric: "valid_1 auc", algorithm: `{algorithmName: random}`,
		parameters: katibLR, template: "primaryContainerName: xgboost",
		resource: `{apiVersion: kubeflow.org/v1, kind: XGBoostJob, spec: {xgbReplicaSpecs: {Master: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: xgboost, image: lightgbm, args: %s}]}}}}}}`},
	{file: "kubeflow-training-operator/mpijob-horovod.yaml", metric: "loss", kind: "minimize", algorithm: `{algorithmName: random}`,
		parameters: katibLR + `, {name: num-steps, parameterType: int, feasibleSpace: {min: "50", max: "150", step: "10"}}`,
		template:   "primaryContainerName: mpi-launcher\n    primaryPodLabels: {mpi-job-role: launcher}\n    " + katibSucceeded,
		resource:   `{apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {slotsPerWorker: 1, mpiReplicaSpecs: {Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi-launcher, image: horovod, command: %s}]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: mpi-worker, image: horovod}]}}}}}}`,
		notes:      []string{"successCondition is in another language here"},
		check:      func(s *study.Spec) bool { return len(s.Trial.Command) > 0 && s.Trial.Command[0] == "python3" }},
	{file: "kubeflow-trainer/trainjob-pytorch.yaml", metric: "loss", kind: "minimize", algorithm: `{algorithmName: random}`,
		parameters: katibLR, template: "primaryContainerName: node",
		resource: `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2, image: mnist, command: %s}}}`,
		job:      "a study cannot bring a TrainJob, which has no pod template",
		notes:    []string{`the container "node" names no command`}},
	{file: "argo/argo-workflow.yaml", metric: "Validation-accuracy", algorithm: `{algorithmName: random}`, parameters: katibLR,
		template: "primaryContainerName: main\n    successCondition: 'status.[@this].#(phase==\"Succeeded\")#'",
		resource: `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: hp, templates: [{name: hp, container: {name: model-training, image: mnist, command: %s}}]}}`,
		job:      "a study cannot bring a Workflow, which has no pod template",
		notes:    []string{`the container "main" names no command`}},
	{file: "tekton/pipeline-run.yaml", metric: "Validation-accuracy", algorithm: `{algorithmName: random}`, parameters: katibLR,
		template: "primaryContainerName: step-model-training\n    " + katibSucceeded,
		resource: `{apiVersion: tekton.dev/v1beta1, kind: PipelineRun, spec: {pipelineSpec: {tasks: [{name: model-training, taskSpec: {steps: [{name: model-training, image: mnist, command: %s}]}}]}}}`,
		job:      "a study cannot bring a PipelineRun, which has no pod template",
		notes:    []string{`the container "step-model-training" names no command`}},
	{file: "trial-template/trial-metadata-substitution.yaml", metric: "Validation-accuracy", algorithm: `{algorithmName: random}`,
		parameters: katibLR,
		template:   katibTraining, words: "name: trialName, reference: '${trialSpec.Name}'|name: trialLabel, reference: " +
			"'${trialSpec.Labels[custom-key]}'",
		resource: strings.Replace(katibPlainJob, "kind: Job,", "kind: Job, metadata: {labels: {custom-key: custom-label}},", 1),
		notes:    []string{"the command has the trial's name in it"},
		check:    func(s *study.Spec) bool { return s.Trial.Command[len(s.Trial.Command)-1] == "custom-label" }},
	{file: "metrics-collector/custom-metrics-collector.yaml", metric: "accuracy", algorithm: `{algorithmName: random}`,
		collector:  `{source: {fileSystemPath: {path: /katib/mnist.log, kind: File}}, collector: {kind: Custom, customCollector: {image: collector}}}`,
		parameters: katibLR, template: katibTraining, resource: katibPlainJob,
		err: `spec.metricsCollectorSpec.collector.kind "Custom": want StdOut, File, TensorFlowEvent, None or Push`},
	{file: "nas/darts-cpu.yaml", metric: "Best-Genotype", algorithm: "{algorithmName: darts}\n  nasConfig: {graphConfig: {numLayers: 1}}",
		template: katibTraining, resource: katibPlainJob, err: "spec.nasConfig: searches of architectures have no counterpart"},
	{file: "trial-template/trial-configmap-source.yaml", metric: "Validation-accuracy", algorithm: `{algorithmName: random}`,
		parameters: katibLR,
		template: katibTraining + "\n    configMap: {configMapName: trial-templates, configMapNamespace: kubeflow, templatePath: " +
			"defaultTrialTemplate.yaml}",
		err: "spec.trialTemplate.configMap: the template is in the cluster; want it as trialSpec"},
}

// text returns the Experiment.
func (e *katibExample) text() string {
	kind, collector := e.kind, ""
	if kind == "" {
		kind = "maximize"
	}
	if e.collector != "" {
		collector = "  metricsCollectorSpec: " + e.collector + "\n"
	}
	command, words := []string{"python3", "mnist.py"}, []string{}
	for parameter := range strings.SplitSeq(e.parameters, "{name: ") {
		if name, _, ok := strings.Cut(parameter, ","); ok && name != "" {
			words = append(words, "name: "+name+", reference: "+name)
			command = append(command, "'--"+name+"=${trialParameters."+name+"}'")
		}
	}
	for word := range strings.SplitSeq(e.words, "|") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(word, "name: "), ","); ok {
			words = append(words, word)
			command = append(command, "'${trialParameters."+name+"}'")
		}
	}
	text := fmt.Sprintf(`apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {namespace: kubeflow, name: %s}
spec:
  objective: {type: %s, goal: 0.99, objectiveMetricName: %s, additionalMetricNames: [Train-accuracy]}
  algorithm: %s
%s  parallelTrialCount: 3
  maxTrialCount: 12
  maxFailedTrialCount: 3
  parameters: [%s]
  trialTemplate:
    %s
    trialParameters: [%s]
`, label(strings.TrimSuffix(e.file, ".yaml")), kind, e.metric, e.algorithm, collector, e.parameters, e.template,
		"{"+strings.Join(words, "}, {")+"}")
	if e.resource != "" {
		text += "    trialSpec: " + fmt.Sprintf(e.resource, "["+strings.Join(command, ", ")+"]") + "\n"
	}
	return strings.ReplaceAll(text, "[{}]", "[]")
}

// Each of Katib's examples becomes a valid study with its parameters, or an error says what stands against it.
func TestKatibExamples(t *testing.T) {
	for _, e := range katibExamples {
		t.Run(e.file, func(t *testing.T) {
			if e.err != "" {
				if _, err := Katib([]byte(e.text()), KatibOptions{}); err == nil || !strings.Contains(err.Error(), e.err) {
					t.Errorf("error %v, want one with %q", err, e.err)
				}
				return
			}
			r, s := imported(t, e.text())
			notes := strings.Join(r.Notes, "\n")
			for _, piece := range e.notes {
				if !strings.Contains(notes, piece) {
					t.Errorf("the notes lack %q:\n%s", piece, notes)
				}
			}
			if s.Spec.Budget.MaxTrials != 12 || s.Spec.Parallelism != 3 || e.check != nil && !e.check(&s.Spec) {
				t.Errorf("the study is\n%s", r.Study)
			}
			for _, p := range s.Spec.Parameters {
				if !strings.Contains(string(r.Template), "${"+p.Name+"}") {
					t.Errorf("the template lacks %s:\n%s", p.Name, r.Template)
				}
			}
		})
	}
}

// With --job, each becomes a study that brings its resource, of any kind that has pod templates, or an error says what
// stands against it.
func TestKatibExamplesWithTheirJobs(t *testing.T) {
	for _, e := range katibExamples {
		t.Run(e.file, func(t *testing.T) {
			if want := e.err + e.job; want != "" {
				if _, err := Katib([]byte(e.text()), KatibOptions{Job: true}); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
				return
			}
			r, s := importedWith(t, e.text(), KatibOptions{Job: true})
			j, notes := s.Spec.Trial.Job, strings.Join(r.Notes, "\n")
			if j == nil || len(s.Spec.Trial.Command) > 0 {
				t.Fatalf("the study is\n%s", r.Study)
			}
			other := !strings.Contains(e.resource, "kind: Job,")
			if other == j.IsJob() || other && !strings.Contains(e.resource, "kind: "+j.Kind+",") ||
				other != strings.Contains(notes, "in studies.kinds") || strings.Contains(notes, "Condition was left out") {
				t.Errorf("it brings a %s %s; the notes are\n%s", j.APIVersion, j.Kind, notes)
			}
			for _, p := range s.Spec.Parameters {
				if !strings.Contains(string(r.Study), "${"+p.Name+"}") {
					t.Errorf("the Job lacks %s:\n%s", p.Name, r.Study)
				}
			}
		})
	}
}
