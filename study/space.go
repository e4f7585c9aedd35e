package study

// Space is a compiled search space: parameters in dependency order, conditions
// and constraints ready to evaluate. It is immutable and safe for concurrent use.
//
// The methods are (see their own comments):
//
//	NewSpace(params []Parameter, constraints []string, initial []map[string]any) (*Space, error)
//	(*Study).Space() (*Space, error)                 compiles Spec.Parameters, Constraints, Initial
//	(*Space).Parameters() []Parameter                normalised (defaults filled in), each after those its When names
//	(*Space).Active(p Point, name string) bool       whether the parameter is active given p's other values
//	(*Space).Feasible(p Point) bool                  whether p satisfies every constraint
//	(*Space).Check(p Point) error                    full membership: types, bounds, steps, activity, constraints
//	(*Space).Normalize(raw map[string]any) (Point, error)   decoded JSON/YAML values -> a Point (partial allowed)
//	(*Space).Key(p Point) string                     canonical text of a point: equal points, equal keys
//	(*Space).Size() (n int, finite bool)             number of points, constraints ignored
//	(*Space).Enumerate(limit int) ([]Point, bool)    all feasible points if there are at most limit
//	(*Space).Initial() []Point                       the study file's initial points, possibly partial
type Space struct{}
