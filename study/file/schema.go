package file

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// durationPattern matches what time.ParseDuration accepts, except negative durations.
const durationPattern = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|[uµμ]s|ms|s|m|h))+)$`

// JSONSchema returns the JSON Schema (2020-12) of a study file, for editors: the
// fields, their types and limits. Only Parse checks conditions on several fields.
func JSONSchema() []byte {
	texts := descriptions()
	reflector := jsonschema.Reflector{
		Anonymous:     true,
		Mapper:        mapType,
		LookupComment: func(t reflect.Type, field string) string { return texts[t.Name()+"."+field] },
	}
	schema := reflector.Reflect(&study.Study{})
	schema.Title = "Fantasia study"
	constrain(schema.Definitions)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("study: the schema has no form in JSON: %v", err)) // it contains no external values
	}
	return append(text, '\n')
}

// mapType returns the schemas of the types that Go's kinds do not determine, and nil
// for others.
func mapType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[study.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case reflect.TypeFor[study.Direction]():
		return oneOf(study.Minimize, study.Maximize)
	case reflect.TypeFor[study.Take]():
		return oneOf(study.TakeLast, study.TakeBest)
	case reflect.TypeFor[study.Mode]():
		return oneOf(study.ModeProcess, study.ModeStream)
	case reflect.TypeFor[study.Per]():
		return oneOf(study.PerTrials, study.PerHour, study.PerCost)
	case reflect.TypeFor[study.Type]():
		return oneOf(study.Float, study.Int, study.Categorical, study.Ordinal, study.Bool, study.Fixed, study.Fidelity)
	case reflect.TypeFor[study.Scale]():
		return oneOf(study.Linear, study.Log, study.Logit)
	default:
		return nil
	}
}

// oneOf returns the schema of a string with few values.
func oneOf[S ~string](values ...S) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		schema.Enum = append(schema.Enum, string(v))
	}
	return schema
}

// constrain adds the limits that Go's types do not determine, and the defaults.
func constrain(defs jsonschema.Definitions) {
	property := func(of, name string) *jsonschema.Schema {
		schema, ok := defs[of].Properties.Get(name)
		if !ok {
			panic("study: the schema has no " + of + "." + name)
		}
		return schema
	}
	property("Study", "apiVersion").Const = study.APIVersion
	property("Study", "kind").Const = study.Kind
	property("Metadata", "name").Pattern = `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
	property("Metadata", "labels").MaxProperties = count(study.MaxLabels)
	resourceFields(defs["Metadata"])
	property("Spec", "note").MaxLength = count(study.MaxNote)
	property("Objective", "metric").Pattern = `^[^\s\x00-\x1f\x7f]+$`
	property("Objective", "take").Default = study.DefaultTake
	property("Spec", "objectives").MinItems = count(2)
	property("Spec", "objectives").MaxItems = count(study.MaxObjectives)
	property("FrontGoal", "hypervolume").ExclusiveMinimum = "0"
	property("Spec", "limits").MaxItems = count(study.MaxLimits)
	property("Spec", "learnFrom").MaxItems = count(study.MaxEarlier)
	property("Earlier", "trials").MaxItems = count(study.MaxEarlierTrials)
	property("EarlierTrial", "seconds").Minimum = "0"
	property("EarlierTrial", "cost").Minimum = "0"
	property("Limit", "metric").Pattern = property("Objective", "metric").Pattern
	property("Spec", "parameters").MinItems = count(1)
	property("Spec", "parameters").MaxItems = count(space.MaxParameters)
	property("Spec", "constraints").MaxItems = count(space.MaxConstraints)
	property("Spec", "pool").Pattern = `^[A-Za-z0-9_-]{1,63}$`
	property("Spec", "pool").Default = study.DefaultPool
	bound(property("Spec", "parallelism"), 1, maxParallelism)
	property("Algorithm", "name").Default = DefaultAlgorithm
	property("EarlyStopping", "name").Default = DefaultRule
	property("EarlyStopping", "metric").Pattern = property("Objective", "metric").Pattern
	property("Algorithm", "seed").Minimum = "0"
	property("Algorithm", "wait").Default = study.DefaultWait.String()
	property("Algorithm", "fallbackAfter").Default = study.DefaultFallbackAfter.String()
	bound(property("Budget", "maxTrials"), 1, maxTrials)
	bound(property("Budget", "maxFailedTrials"), 0, maxTrials)
	property("TrialTemplate", "command").MinItems = count(1)
	property("TrialTemplate", "mode").Default = study.DefaultMode
	property("TrialTemplate", "grace").Default = study.DefaultGrace.String()
	property("TrialTemplate", "env").PropertyNames = &jsonschema.Schema{Pattern: `^[A-Za-z_][A-Za-z0-9_]*$`}
	bound(property("Retries", "lost"), 0, maxRetries).Default = study.DefaultRetriesLost
	bound(property("Retries", "timeout"), 0, maxRetries).Default = 0
	bound(property("Retries", "failed"), 0, maxRetries).Default = 0
	defs["Spec"].OneOf = []*jsonschema.Schema{{Required: []string{"objective"}}, {Required: []string{"objectives"}}}
	defs["Budget"].AnyOf = []*jsonschema.Schema{
		{Required: []string{"maxTrials"}}, {Required: []string{"maxDuration"}}, {Required: []string{"maxCost"}},
	}
	property("Budget", "maxCost").ExclusiveMinimum = "0"
	property("StopWhen", "gain").ExclusiveMinimum = "0"
	property("StopWhen", "per").Default = string(study.PerTrials)
	property("Cost", "metric").Pattern = property("Objective", "metric").Pattern
	defs["Limit"].OneOf = []*jsonschema.Schema{{Required: []string{"max"}}, {Required: []string{"min"}}}
	defs["Metrics"].OneOf = []*jsonschema.Schema{{Required: []string{"pattern"}}, {Required: []string{"file"}}}
	constrainParameter(defs["Parameter"], property)
}

// constrainParameter adds which fields belong to which type.
func constrainParameter(parameter *jsonschema.Schema, property func(of, name string) *jsonschema.Schema) {
	property("Parameter", "name").Pattern = "^[^\\x00-/:-@\\[-^`{-\\x7f][^\\x00-\\x1f={}$`\\x7f]*$"
	bound(property("Parameter", "reduction"), 2, space.MaxReduction)
	property("Parameter", "step").ExclusiveMinimum = "0"
	property("Prior", "sd").ExclusiveMinimum = "0"
	property("Prior", "weights").Items = &jsonschema.Schema{Type: "number", ExclusiveMinimum: "0"}
	property("Prior", "weights").MinItems = count(2)
	property("Prior", "weights").MaxItems = count(space.MaxListed)
	property("Parameter", "values").Items = anyScalar()
	property("Parameter", "values").MinItems = count(2)
	property("Parameter", "values").MaxItems = count(space.MaxListed)
	property("Parameter", "value").AnyOf = anyScalar().AnyOf
	property("Parameter", "when").AdditionalProperties = &jsonschema.Schema{
		Type: "array", Items: anyScalar(), MinItems: count(1), MaxItems: count(space.MaxListed),
	}
	when := func(required, allowed []string, types ...study.Type) *jsonschema.Schema {
		fields := jsonschema.NewProperties()
		fields.Set("type", oneOf(types...))
		then := &jsonschema.Schema{Required: required, Properties: jsonschema.NewProperties()}
		for _, name := range []string{"min", "max", "step", "scale", "values", "value", "prior", "reduction"} {
			if !slices.Contains(allowed, name) {
				then.Properties.Set(name, jsonschema.FalseSchema)
			}
		}
		return &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{"type"}, Properties: fields}, Then: then}
	}
	parameter.AllOf = []*jsonschema.Schema{
		when([]string{"min", "max"}, []string{"min", "max", "step", "scale", "prior"}, study.Float, study.Int),
		when([]string{"values"}, []string{"values", "prior"}, study.Categorical, study.Ordinal),
		when([]string{"value"}, []string{"value"}, study.Fixed),
		when(nil, []string{"prior"}, study.Bool),
		when([]string{"min", "max"}, []string{"min", "max", "reduction"}, study.Fidelity),
	}
}

// anyScalar returns the schema of a parameter's value.
func anyScalar() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

func bound(schema *jsonschema.Schema, low, high int) *jsonschema.Schema {
	schema.Minimum, schema.Maximum = json.Number(strconv.Itoa(low)), json.Number(strconv.Itoa(high))
	return schema
}

func count(n uint64) *uint64 { return &n }
