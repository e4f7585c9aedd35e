package crd

// rule is a validation in CEL: what must hold, where it is reported, and what is
// said where it does not.
type rule struct{ holds, field, message string }

// extras are keywords beyond those of the study file's schema, by definition and
// field. Bounds keep the rules' cost within what the API server accepts.
var extras = map[string]map[string]object{
	"Spec": {
		// Names are unique, and an apply merges parameters by name.
		"parameters": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"}},
	},
	"Objective": {"metric": {"maxLength": 64}},
	"Limit":     {"metric": {"maxLength": 64}},
	"Cost":      {"metric": {"maxLength": 64}},
	"Algorithm": {"name": {"maxLength": 64}, "seed": {"format": "int64"}},
	"Budget":    {"maxDuration": {"maxLength": 64}},
	"Parameter": {"name": {"maxLength": 64}},
	"TrialTemplate": {
		"command": {"maxItems": 1000, "items": object{"type": "string", "maxLength": 4096}},
		"env":     {"maxProperties": 256},
	},
}

const created = "!has(oldSelf.status) || !has(oldSelf.status.id) || "

// fixed is the rule of a field of the objective, which cannot change once a study has begun.
func fixed(field string) rule {
	return rule{
		holds: created + "!has(self.spec.objective) || !has(oldSelf.spec.objective) || " +
			"self.spec.objective." + field + " == oldSelf.spec.objective." + field,
		field:   ".spec.objective." + field,
		message: "objective." + field + " cannot change once the study has begun, since it is what the trials have measured: make another study",
	}
}

// fixedObjectives is the rule of several objectives, of which only the references can change.
var fixedObjectives = rule{
	holds: created + "(has(self.spec.objectives) ? self.spec.objectives.map(o, [o.metric, o.direction, o.take]) : []) == " +
		"(has(oldSelf.spec.objectives) ? oldSelf.spec.objectives.map(o, [o.metric, o.direction, o.take]) : [])",
	field:   ".spec.objectives",
	message: "objectives cannot change once the study has begun, since they are what the trials have measured: make another study",
}

// rules hold what file.Parse checks over several fields, as far as CEL sees
// them: it does not see values, value, when, initial and settings, whose types
// the study file decides. By definition.
var rules = map[string][]rule{
	"Study": {
		{"size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')", "",
			"metadata.name: a study's name is lower-case letters, digits and dashes, at most 63"},
		fixed("metric"), fixed("direction"), fixed("take"), fixedObjectives,
		{created + "(has(self.spec.trial) && has(self.spec.trial.command) ? self.spec.trial.command : []) == " +
			"(has(oldSelf.spec.trial) && has(oldSelf.spec.trial.command) ? oldSelf.spec.trial.command : [])",
			".spec", "trial.command cannot change once the study has begun, since it is what the trials have measured: make another study"},
		{"has(self.spec.trial) && (has(self.spec.trial.command) || has(self.spec.trial.job)) || !has(self.spec.trial) || " +
			"!has(self.spec.trial.metrics) && !has(self.spec.trial.workdir) && !has(self.spec.trial.env) && !has(self.spec.trial.timeout)",
			".spec.trial", "only retries can be set without a command or a job"},
	},
	"Spec": {
		{"has(self.objective) != has(self.objectives)", "", "a study has one of objective and objectives"},
		{"!has(self.objective) || !has(self.objective.reference)", ".objective", "reference is for one of several objectives: leave it out"},
		{"!has(self.objectives) || self.objectives.all(o, !has(o.goal))", ".objectives", "goal is for a single objective: leave it out"},
		{"!has(self.goal) || has(self.objectives) && size(self.objectives) <= 4 && self.objectives.all(o, has(o.reference))", ".goal",
			"a goal of several objectives needs at most 4 of them, each with a reference; write the goal of a single one as objective.goal"},
		{"!has(self.objectives) || self.objectives.all(o, self.objectives.exists_one(p, p.metric == o.metric))", ".objectives",
			"each objective has its own metric"},
		{"!has(self.budget.maxCost) || has(self.cost)", ".budget.maxCost",
			"maxCost needs cost: name the metric in which it is counted, as in cost: {metric: dollars}"},
		{"!has(self.budget.stopWhen) || has(self.objective) && !has(self.limits) && self.parameters.all(p, p.type != 'fidelity')",
			".budget.stopWhen", "stopWhen is for a single objective without limits and without a fidelity"},
		{"!has(self.budget.stopWhen) || !has(self.budget.stopWhen.per) || self.budget.stopWhen.per != 'cost' || has(self.cost)",
			".budget.stopWhen.per", "per: cost needs a study whose trials have one: set cost, or per: hour"},
		{"!has(self.cost) || !has(self.objective) || self.cost.metric != self.objective.metric", ".cost.metric",
			"the cost is the study's only objective: name another metric, or write both as objectives"},
	},
	"Limit": {
		{"has(self.max) != has(self.min)", "", "a limit has one of max and min; for both, write two limits of the metric"},
	},
	"Parameter": {
		{"!(self.name in ['args', 'overrides', 'file'])", ".name",
			"args, overrides and file have meanings in a command: choose another name"},
		{"!(self.type in ['float', 'int', 'fidelity']) || has(self.min) && has(self.max)", "",
			"a float, an int or a fidelity needs min and max"},
		{"self.type in ['float', 'int', 'fidelity'] || !has(self.min) && !has(self.max)", "",
			"min and max are for types float, int and fidelity: leave them out"},
		{"self.type in ['float', 'int'] || !has(self.step) && !has(self.scale)", "",
			"step and scale are for types float and int: leave them out"},
		{"self.type == 'fidelity' || !has(self.reduction)", ".reduction", "is for type fidelity: leave it out"},
		{"self.type != 'fidelity' || !has(self.min) || !has(self.max) || self.min >= 1.0 && self.max <= 9007199254740991.0 && " +
			"double(int(self.min)) == self.min && double(int(self.max)) == self.max", "",
			"a fidelity has whole bounds from 1 to 2^53-1"},
		{"!has(self.min) || !has(self.max) || self.min < self.max", ".max",
			"max must be above min; to keep one value, use type: fixed with value"},
		{"!has(self.scale) || self.scale != 'log' || !has(self.min) || self.min > 0.0", ".min",
			"scale log needs a range above 0"},
		{"!has(self.scale) || self.scale != 'logit' || self.type != 'float' || !has(self.min) || !has(self.max) || self.min > 0.0 && self.max " +
			"< 1.0", ".scale",
			"scale logit needs a range inside of (0, 1), ends excluded"},
		{"self.type != 'int' || !has(self.min) || self.min >= -9007199254740991.0 && self.min <= 9007199254740991.0 && double(int(self.min)) " +
			"== self.min", ".min",
			"an int has whole bounds, at most 2^53-1 from 0"},
		{"self.type != 'int' || !has(self.max) || self.max >= -9007199254740991.0 && self.max <= 9007199254740991.0 && double(int(self.max)) " +
			"== self.max", ".max",
			"an int has whole bounds, at most 2^53-1 from 0"},
		{"self.type != 'int' || !has(self.step) || self.step <= 9007199254740991.0 && double(int(self.step)) == self.step", ".step",
			"an int has whole steps"},
		{"!has(self.step) || !has(self.min) || !has(self.max) || self.min >= self.max || self.step <= self.max - self.min", ".step",
			"a step is at most the whole range"},
		{"!has(self.prior) || !(self.type in ['fixed', 'fidelity'])", ".prior", "a fixed parameter and a fidelity have no prior"},
		{"!has(self.prior) || !(self.type in ['float', 'int']) || has(self.prior.mean) && has(self.prior.sd) && !has(self.prior.weights)",
			".prior",
			"the prior of a float or an int has mean and sd"},
		{"!has(self.prior) || !(self.type in ['categorical', 'ordinal', 'bool']) || has(self.prior.weights) && !has(self.prior.mean) && " +
			"!has(self.prior.sd)", ".prior",
			"the prior of a categorical, an ordinal or a bool has weights, one for each value"},
		{"!has(self.prior) || !has(self.prior.mean) || !has(self.min) || !has(self.max) || self.prior.mean >= self.min && self.prior.mean <= " +
			"self.max", ".prior",
			"mean is outside of the range"},
	},
	"Metrics": {
		{"[has(self.pattern), has(self.file), has(self.events)].filter(set, set).size() == 1", "",
			"metrics have one of pattern, file and events: leave metrics out if the program reports them itself"},
	},
	"TrialTemplate": {
		{"!has(self.job) || !has(self.command) && !has(self.workdir) && !has(self.env)", ".job",
			"a job cannot be combined with command, workdir and env: its containers say how the program runs"},
		{"!has(self.command) || self.command[0] != ''", ".command", "the first element is the program's name or path, and is empty"},
		{"!has(self.mode) || self.mode != 'stream' || !has(self.metrics) || !has(self.metrics.file)", ".metrics",
			"a file is read when a program ends, which in mode stream it does not after a trial: use a pattern, or reports"},
		{"!has(self.mode) || self.mode != 'stream' || !has(self.metrics) || !has(self.metrics.events)", ".metrics",
			"event files are those of one trial, but in mode stream a program evaluates many: use a pattern, or reports"},
		{"!has(self.env) || self.env.all(name, name.matches('^[A-Za-z_][A-Za-z0-9_]*$') && !name.startsWith('FANTASIA_'))", ".env",
			"names of variables are letters, digits and underscores, with no digit first, and those that start with FANTASIA_ are reserved"},
	},
}

// validations are a definition's rules as Kubernetes has them, nil for none.
func validations(definition string) []any {
	var out []any
	for _, r := range rules[definition] {
		v := object{"rule": r.holds, "message": r.message}
		if r.field != "" {
			v["fieldPath"] = r.field
		}
		out = append(out, v)
	}
	return out
}
