// Package loop is what all Bayesian optimisers share: it picks the points of one request,
// one after another. It knows no model and no acquisition function; both have their
// contracts in package bayes. An optimiser gives it a model, a function, and an ordered list
// of strategies.
//
// # How a suggestion is made
//
//  1. design.go: While too few trials have completed for a model, points come from the
//     initial design (Design.Propose). Another initial design is another Design.
//  2. The optimiser fits its model: packages surrogate and gp, or its own. What a model can
//     learn from (features from other studies, a column for the step, a second output for
//     the duration) is an input of the model. It ends behind bayes.Surrogate, and the loop
//     does not see it.
//  3. loop.go: New conditions the models on the points that are still being evaluated and
//     finds the incumbents. members.go says how a pending point counts.
//  4. candidates.go: New spreads candidates over the space and around the best points;
//     priors.go moves some to where users expect the best.
//  5. Fill runs the strategies (strategy.go) until one of them picks a point:
//     a. Score brings posteriors, incumbents and the candidates' values up to date.
//     value.go defines the value of a point: the acquisition function (package
//     acquisition), averaged over the models, times the probabilities to complete
//     (feasibility.go) and to be within the limits (limits.go), times the priors to a
//     power (priors.go). Another factor, such as one over the expected cost to a power
//     that falls (cost cooling), belongs there: each is a term in log space with a
//     gradient, and round in improve.go, which climbs, MUST add the same terms as value.
//     b. Best searches from the best candidates (improve.go), along the gradient by
//     L-BFGS (lbfgs.go). Cover (cover.go) and Draw (thompson.go, trustregion.go) are
//     other ways to choose.
//     c. Strategies of an optimiser replace the choice, or evaluate a point again
//     (replicate.go).
//     d. PickBest makes the choice a suggestion (pick.go), with the reasons that people
//     see, and adds it to the models as pending. Then the next point's turn begins at a.
//
// With several objectives front.go takes the place of a single criterion. The state that an
// optimiser keeps between requests is encoded by state.go.
//
// Everything is a pure function of the request, whose generator is the only source of
// randomness: the same request gives the same points, bit for bit. A change of the order in
// which the generator is used changes every later point.
package loop
