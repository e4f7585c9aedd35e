package loop

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// climber maximises a smooth function within the unit cube by projected L-BFGS:
// limited-memory BFGS over the coordinates that are not at a bound, with
// backtracking along the projected path (Bertsekas 1982, Projected Newton methods). It
// does not call the function, so that several climbers can be evaluated together:
// evaluate the function at next and pass the result to observe, until done.
type climber struct {
	free     []bool // coordinates that move
	x, grad  []float64
	value    float64
	next     []float64 // where the function is to be evaluated
	move     []float64 // direction of the current search
	step     float64
	steps, y [][]float64 // the latest steps and changes of the gradient
	started  bool
	done     bool
}

const (
	climberMemory = 6    // steps whose curvature counts; 3 to 20 are usual (Nocedal and Wright, section 7.2)
	sufficient    = 1e-4 // c₁ of the condition of Armijo (Nocedal and Wright, section 3.1)
	smallestStep  = 1e-5 // of the unit cube's side: a shorter one changes no parameter that matters
	enoughGain    = 1e-5 // in nats, or the outcomes' standard deviations: an iteration that gains less is the last
)

// newClimber starts at x, which it copies.
func newClimber(x []float64, free []bool) *climber {
	c := &climber{free: free, next: append([]float64(nil), x...)}
	c.done = true
	for _, f := range free {
		c.done = c.done && !f
	}
	return c
}

// observe passes the function's value and gradient at next. A value of −Inf means that
// the place is not allowed.
func (c *climber) observe(value float64, gradient []float64) {
	if !c.started {
		c.started = true
		c.x, c.value, c.grad = c.next, value, append([]float64(nil), gradient...)
		c.done = math.IsInf(value, 0)
		c.turn()
		return
	}
	var rise float64 // predicted by the linear model for the step taken
	for i, t := range c.next {
		rise += c.grad[i] * (t - c.x[i])
	}
	if !(value >= c.value+sufficient*rise) {
		if c.step /= 4; c.step*floats.Norm(c.move, math.Inf(1)) < smallestStep {
			c.done = true
			return
		}
		c.project()
		return
	}
	c.learn(gradient)
	c.done = value-c.value < enoughGain
	c.x, c.value, c.grad = c.next, value, append(c.grad[:0:0], gradient...)
	c.turn()
}

// learn stores the curvature along the accepted step if it is that of a maximum: with any
// other, L-BFGS's matrix would not be positive definite, and its direction might lead down.
func (c *climber) learn(gradient []float64) {
	step, change := make([]float64, len(c.x)), make([]float64, len(c.x))
	for i := range step {
		if c.free[i] {
			step[i] = c.next[i] - c.x[i]
			change[i] = c.grad[i] - gradient[i] // of the negative function
		}
	}
	if floats.Dot(step, change) <= 1e-10*floats.Dot(change, change) {
		return
	}
	c.steps, c.y = append(c.steps, step), append(c.y, change)
	if len(c.steps) > climberMemory {
		c.steps, c.y = c.steps[1:], c.y[1:]
	}
}

// turn chooses the next direction at x.
func (c *climber) turn() {
	if c.done {
		return
	}
	c.move = c.ascent()
	direction := c.newton(c.move)
	if floats.Dot(direction, c.move) > 0 {
		c.move = direction
	} else {
		c.steps, c.y = nil, nil
	}
	longest := floats.Norm(c.move, math.Inf(1))
	if longest == 0 || math.IsNaN(longest) {
		c.done = true
		return
	}
	c.step = 1
	if len(c.steps) == 0 {
		c.step = 0.1 / longest // no curvature is known yet: a tenth of the cube's side
	} else if longest > 0.5 {
		c.step = 0.5 / longest // the quadratic model is not trusted across more than half of the cube
	}
	c.project()
}

// ascent returns the gradient in the coordinates that are free to follow it.
func (c *climber) ascent() []float64 {
	g := make([]float64, len(c.x))
	for i, v := range c.grad {
		atBound := c.x[i] <= 0 && v < 0 || c.x[i] >= 1 && v > 0
		if c.free[i] && !atBound {
			g[i] = v
		}
	}
	return g
}

// newton runs the two-loop recursion of L-BFGS (Nocedal and Wright, algorithm 7.4) over
// the coordinates in which g is not 0.
func (c *climber) newton(g []float64) []float64 {
	q := append([]float64(nil), g...)
	k := len(c.steps)
	alpha := make([]float64, k)
	for i := k - 1; i >= 0; i-- {
		alpha[i] = floats.Dot(c.steps[i], q) / floats.Dot(c.steps[i], c.y[i])
		floats.AddScaled(q, -alpha[i], c.y[i])
	}
	if k > 0 {
		last := k - 1
		floats.Scale(floats.Dot(c.steps[last], c.y[last])/floats.Dot(c.y[last], c.y[last]), q)
	}
	for i := range k {
		beta := floats.Dot(c.y[i], q) / floats.Dot(c.steps[i], c.y[i])
		floats.AddScaled(q, alpha[i]-beta, c.steps[i])
	}
	for i, v := range g {
		if v == 0 {
			q[i] = 0
		}
	}
	return q
}

// project sets next to the end of the step, projected onto the cube.
func (c *climber) project() {
	next := make([]float64, len(c.x))
	for i, v := range c.x {
		next[i] = min(1, max(0, v+c.step*c.move[i]))
	}
	c.next = next
}
