package file

// descriptions returns the texts that editors show, by Go type and field.
func descriptions() map[string]string {
	return map[string]string{
		"Study.APIVersion": "The version of the study file's format.",
		"Study.Kind":       "What the file describes.",
		"Study.Metadata":   "What the study is called.",
		"Study.Spec":       "The search space, the objective, the budget and the program.",
		"Metadata.Name":    "The study's name, a DNS label: lower-case letters, digits and dashes.",
		"Metadata.Labels":  "Labels of the study, for people and for filters of lists, in the form of Kubernetes' labels.",
		"Spec.Note":        "What people should know about the study.",
		"Spec.Attributes":  "What programs have noted about the study: any JSON, by name.",
		"Spec.Objective":   "The metric to optimise.",
		"Spec.Several": "The metrics to optimise together, instead of a single objective. The result is the front: the trials that " +
			"no other trial beats in one objective without losing in another.",
		"Spec.Goal": "Ends a study of several objectives. Each of them needs a reference.",
		"FrontGoal.Hypervolume": "The study ends as soon as the front dominates this much of the space of values, up to the references: the " +
			"product of the metrics' units.",
		"Spec.Limits":  "Bounds of metrics. Only trials within all of them can be the best or on the front.",
		"Limit.Metric": "The name of a metric that the program reports. It can be an objective's.",
		"Limit.Max":    "The largest value within the limit.",
		"Limit.Min":    "The smallest value within the limit.",
		"Limit.Early": "Whether the metric is known before a trial ends and then stays the same, such as a model's size. Trials " +
			"that are stopped early or fail then count in the model of this limit, too.",
		"Spec.Cost": "What a trial costs, if that is not its time. A budget in it is budget.maxCost, and the search can prefer points that " +
			"are expected to cost little.",
		"Cost.Metric":          "The metric by which the program reports what its run has cost so far, such as dollars.",
		"Spec.Parameters":      "The parameters to tune.",
		"Spec.LearnParameters": "Whether clients of the API declare the parameters as they evaluate trials.",
		"Spec.Constraints": "CEL expressions over numeric and boolean parameters that every suggestion meets, such as \"a * b <= 10\" " +
			"or \"!flag || a < 3\". Every number is a double, characters of a name other than letters, digits and dots are written as " +
			"underscores, and a constraint that names an inactive parameter holds.",
		"Spec.Initial":   "Points that are run first and counted. What is missing in a point is sampled.",
		"Spec.Algorithm": "The optimiser.",
		"Spec.LearnFrom": "Studies that were made before. The optimiser expects good points where theirs were, as far as the study's own " +
			"trials agree.",
		"Earlier.Study":           "The earlier study's name. Without trials, the coordinator reads those of its study of this name, once.",
		"Earlier.Direction":       "Which way the earlier study's metric improves, if not as this study's.",
		"Earlier.Trials":          "Completed trials of the earlier study.",
		"EarlierTrial.Parameters": "The values of the trial's parameters. Those that this study does not have are ignored.",
		"EarlierTrial.Value":      "What the objective was. Only the order of an earlier study's values counts, not their unit.",
		"EarlierTrial.Seconds":    "How long the trial's program took; 0 if that is not known.",
		"EarlierTrial.Cost":       "What the trial has cost, if the earlier study had a cost other than time; 0 if that is not known.",
		"Spec.EarlyStopping":      "Stops trials that do much worse than others at the same step. Left out, every trial runs to its end.",
		"Spec.Budget":             "When the study ends, at the latest.",
		"Spec.Parallelism":        "How many trials may run at once: by default 1, or 100 if clients of the API ask for the trials.",
		"Spec.Pool":               "The pool of workers that evaluates the study.",
		"Spec.Trial": "How one evaluation is run. Left out, or without a command and a Job, clients of the API ask for the " +
			"trials and tell their values.",
		"Objective.Metric":    "The metric's name, as the program reports it.",
		"Objective.Direction": "Which way the metric improves.",
		"Objective.Take": "Which of a trial's reports is its value. best for one of several objectives: the report in which it was " +
			"best counts for all.",
		"Objective.Goal":      "The study ends as soon as a trial's value is as good as this. For a single objective.",
		"Objective.Reference": "The worst value that is still of interest. For one of several objectives.",
		"Objective.Early": "Whether the metric is known before a trial ends and then stays the same, such as a model's size. Trials " +
			"that are stopped early or fail then count in the model of this objective, too. For one of several objectives.",
		"Algorithm.Name":          "The optimiser's name.",
		"Algorithm.Seed":          "Makes every suggestion reproducible.",
		"Algorithm.Wait":          "How long a free slot waits for a suggestion that knows every result.",
		"Algorithm.FallbackAfter": "How long a free slot waits for the optimiser before it takes a fallback point.",
		"Algorithm.Settings":      "The optimiser's own settings.",
		"EarlyStopping.Name":      "The rule that decides which trials to stop.",
		"EarlyStopping.Metric": "The metric whose reports are compared, in the objective's direction. By default the objective's; of " +
			"several objectives, name one.",
		"EarlyStopping.Settings": "The rule's own settings.",
		"Budget.MaxTrials": "How many trials to evaluate; failed ones count, cancelled ones do not. Needed unless maxDuration or maxCost " +
			"is set.",
		"Budget.MaxFailedTrials": "The study fails once that many trials have failed. 0: no bound.",
		"Budget.MaxDuration": "How long the study may take, such as 2h. Without maxTrials, no trial is begun that is not expected to end " +
			"in time.",
		"Budget.MaxCost": "What all trials together may cost, in the unit of cost.metric. No trial is begun once what has been spent and what " +
			"is expected of the trials that run have reached it.",
		"Budget.StopWhen": "Ends the study when more trials are hardly worth it. Its reason then says why. " +
			"For one objective, without limits.",
		"StopWhen.Gain": "In the objective's unit: the study ends once 30 more trials gain no more than this in nine of ten cases, by the " +
			"optimiser's model and by what the last trials have gained.",
		"StopWhen.Per": "What gain is counted for: trials is for those 30 trials, hour for an hour of trials, where two at once for an hour " +
			"are two hours, and cost for a unit of cost.metric. What they take is the mean of the 30 trials that ended last.",
		"TrialTemplate.Command": "The program and its arguments; no shell is involved. ${name} is a parameter's value, ${args} becomes " +
			"--name=value for every other active parameter, ${overrides} the same without dashes, ${file} the path of a JSON file with all of " +
			"them; $${ is literal.",
		"TrialTemplate.Job": "Makes each trial a Job of Kubernetes in the namespace of the study's resource, if the operator allows it. " +
			"Only for studies that are resources.",
		"Job.APIVersion": "The API version of another kind than Job, such as kubeflow.org/v1.",
		"Job.Kind":       "Another kind than Job, such as PyTorchJob, that the operator allows.",
		"Job.Container":  "The program's container. By default the first of the pod.",
		"Job.Metadata":   "Labels and annotations of each Job.",
		"Job.Spec": "The spec of each Job, as Kubernetes defines it. ${name}, ${args} and ${FANTASIA_TRIAL} in its texts are " +
			"replaced as in a command.",
		"JobMetadata.Labels":      "Labels of each Job, such as the queue that admits it.",
		"JobMetadata.Annotations": "Annotations of each Job.",
		"TrialTemplate.Mode":      "process: one child process a trial. stream: one long-lived child, or Job, a slot.",
		"TrialTemplate.Metrics": "How to read metrics from a program that does not report them itself: by pattern, from a file or from " +
			"event files.",
		"TrialTemplate.Workdir": "The directory in which the program runs.",
		"TrialTemplate.Env":     "Further environment variables of the program.",
		"TrialTemplate.Timeout": "An attempt that runs longer is ended, such as 10m.",
		"TrialTemplate.Grace":   "How long a program has to end by itself, from SIGTERM to SIGKILL.",
		"TrialTemplate.Retries": "How many further attempts a trial gets, by kind of failure.",
		"Metrics.Pattern":       "A regular expression (RE2) whose named groups are metrics, matched against each line of output.",
		"Metrics.File":          "The path, inside of the trial's directory, of a JSON object of metrics.",
		"Metrics.Events": "A folder, inside of the trial's directory, of event files of TensorFlow. In Jobs, also an absolute path " +
			"in the container.",
		"Retries.Lost":    "For attempts whose worker was lost.",
		"Retries.Timeout": "For attempts that ran into their timeout.",
		"Retries.Failed":  "For attempts whose program failed.",
		"Parameter.Name": "The parameter's name: printable characters other than = { } $ and `; it starts with a letter, a digit or " +
			"_, and has at most 64 bytes. Put y, n, yes, no, on, off and numbers in quotes: kubectl reads them as booleans and numbers, which " +
			"are refused as not of type string.",
		"Parameter.Type": "float, int and fidelity have min and max, categorical and ordinal have values, fixed has a value. A " +
			"fidelity is how thoroughly a trial is evaluated, such as a number of epochs: trials start at its lowest level, and the best of each " +
			"level go on.",
		"Parameter.Min":   "The smallest value of a float, an int or a fidelity.",
		"Parameter.Max":   "The largest value of a float, an int or a fidelity.",
		"Parameter.Prior": "What is believed of where the best value lies; hebo and gp begin there, and forget what proves wrong.",
		"Prior.Mean":      "The best guess, for a float or an int.",
		"Prior.SD": "How sure the guess is: a standard deviation in the parameter's unit, in powers of ten on the scale log, " +
			"in logits on the scale logit.",
		"Prior.Weights": "For a categorical, an ordinal or a bool: how probable each value is to be the best, relative to the " +
			"others, in their order, false before true.",
		"Parameter.Step":  "The distance of neighbouring values, counted from min.",
		"Parameter.Scale": "The scale on which a float or an int is searched.",
		"Parameter.Reduction": "The factor between the levels of a fidelity, 3 unless given. One trial in this many goes on to the next " +
			"level.",
		"Parameter.Values": "The values of a categorical, or of an ordinal in their order. Put y, n, yes, no, on, off and texts such as 0o7 in " +
			"quotes: kubectl reads them as booleans and numbers.",
		"Parameter.Value": "The value of a fixed parameter.",
		"Parameter.When":  "The parameter is active only where each of these parameters is active and has one of the listed values.",
	}
}
