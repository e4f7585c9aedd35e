package study

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"
)

// durationPattern is what time.ParseDuration reads, without negative ones.
const durationPattern = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|[uµμ]s|ms|s|m|h))+)$`

// JSONSchema returns the JSON Schema (2020-12) of a study file, for editors: the
// form of the fields, their types and bounds. What depends on several fields at
// once is for Parse to check.
func JSONSchema() []byte {
	texts := descriptions()
	reflector := jsonschema.Reflector{
		Anonymous:     true,
		Mapper:        mapType,
		LookupComment: func(t reflect.Type, field string) string { return texts[t.Name()+"."+field] },
	}
	schema := reflector.Reflect(&Study{})
	schema.Title = "Fantasia study"
	constrain(schema.Definitions)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("study: the schema has no form in JSON: %v", err)) // it holds no values from outside
	}
	return append(text, '\n')
}

// mapType gives the schemas of the types that Go's kinds do not tell, nil for
// the rest.
func mapType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case reflect.TypeFor[Direction]():
		return oneOf(Minimize, Maximize)
	case reflect.TypeFor[Take]():
		return oneOf(TakeLast, TakeBest)
	case reflect.TypeFor[Mode]():
		return oneOf(ModeProcess, ModeStream)
	case reflect.TypeFor[Type]():
		return oneOf(Float, Int, Categorical, Ordinal, Bool, Fixed)
	case reflect.TypeFor[Scale]():
		return oneOf(Linear, Log, Logit)
	default:
		return nil
	}
}

// oneOf is the schema of a string with few values.
func oneOf[S ~string](values ...S) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		schema.Enum = append(schema.Enum, string(v))
	}
	return schema
}

// constrain adds the bounds that Go's types do not tell, and the defaults.
func constrain(defs jsonschema.Definitions) {
	property := func(of, name string) *jsonschema.Schema {
		schema, ok := defs[of].Properties.Get(name)
		if !ok {
			panic("study: the schema has no " + of + "." + name)
		}
		return schema
	}
	property("Study", "apiVersion").Const = APIVersion
	property("Study", "kind").Const = Kind
	property("Metadata", "name").Pattern = `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`
	property("Objective", "metric").Pattern = `^[^\s\x00-\x1f\x7f]+$`
	property("Objective", "take").Default = DefaultTake
	property("Spec", "parameters").MinItems = count(1)
	property("Spec", "parameters").MaxItems = count(maxParameters)
	property("Spec", "constraints").MaxItems = count(maxConstraints)
	property("Spec", "pool").Pattern = `^[A-Za-z0-9_-]{1,63}$`
	property("Spec", "pool").Default = DefaultPool
	bound(property("Spec", "parallelism"), 1, maxParallelism).Default = DefaultParallelism
	property("Algorithm", "name").Default = DefaultAlgorithm
	property("Algorithm", "seed").Minimum = "0"
	property("Algorithm", "wait").Default = DefaultWait.String()
	property("Algorithm", "fallbackAfter").Default = DefaultFallbackAfter.String()
	bound(property("Budget", "maxTrials"), 1, maxTrials)
	bound(property("Budget", "maxFailedTrials"), 0, maxTrials)
	property("Trial", "command").MinItems = count(1)
	property("Trial", "mode").Default = DefaultMode
	property("Trial", "grace").Default = DefaultGrace.String()
	property("Trial", "env").PropertyNames = &jsonschema.Schema{Pattern: `^[A-Za-z_][A-Za-z0-9_]*$`}
	bound(property("Retries", "lost"), 0, maxRetries).Default = DefaultRetriesLost
	bound(property("Retries", "timeout"), 0, maxRetries).Default = 0
	bound(property("Retries", "failed"), 0, maxRetries).Default = 0
	defs["Metrics"].OneOf = []*jsonschema.Schema{{Required: []string{"pattern"}}, {Required: []string{"file"}}}
	constrainParameter(defs["Parameter"], property)
}

// constrainParameter says which fields go with which type.
func constrainParameter(parameter *jsonschema.Schema, property func(of, name string) *jsonschema.Schema) {
	property("Parameter", "name").Pattern = `^[A-Za-z][A-Za-z0-9_.-]{0,63}$`
	property("Parameter", "step").ExclusiveMinimum = "0"
	property("Prior", "sd").ExclusiveMinimum = "0"
	property("Prior", "weights").Items = &jsonschema.Schema{Type: "number", ExclusiveMinimum: "0"}
	property("Prior", "weights").MinItems = count(2)
	property("Prior", "weights").MaxItems = count(maxListed)
	property("Parameter", "values").Items = anyScalar()
	property("Parameter", "values").MinItems = count(2)
	property("Parameter", "values").MaxItems = count(maxListed)
	property("Parameter", "value").AnyOf = anyScalar().AnyOf
	property("Parameter", "when").AdditionalProperties = &jsonschema.Schema{
		Type: "array", Items: anyScalar(), MinItems: count(1), MaxItems: count(maxListed),
	}
	when := func(required, allowed []string, types ...Type) *jsonschema.Schema {
		fields := jsonschema.NewProperties()
		fields.Set("type", oneOf(types...))
		then := &jsonschema.Schema{Required: required, Properties: jsonschema.NewProperties()}
		for _, name := range []string{"min", "max", "step", "scale", "values", "value", "prior"} {
			if !slices.Contains(allowed, name) {
				then.Properties.Set(name, jsonschema.FalseSchema)
			}
		}
		return &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{"type"}, Properties: fields}, Then: then}
	}
	parameter.AllOf = []*jsonschema.Schema{
		when([]string{"min", "max"}, []string{"min", "max", "step", "scale", "prior"}, Float, Int),
		when([]string{"values"}, []string{"values", "prior"}, Categorical, Ordinal),
		when([]string{"value"}, []string{"value"}, Fixed),
		when(nil, []string{"prior"}, Bool),
	}
}

// anyScalar is the schema of a value of a parameter.
func anyScalar() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

func bound(schema *jsonschema.Schema, low, high int) *jsonschema.Schema {
	schema.Minimum, schema.Maximum = json.Number(strconv.Itoa(low)), json.Number(strconv.Itoa(high))
	return schema
}

func count(n uint64) *uint64 { return &n }
