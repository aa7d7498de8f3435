package session

import (
	"context"
	"time"

	"codehand/tools/permission"
)

// PlanIdle is after how long without a call plan mode ends in a session that several conversations share: the one that
// entered it may be gone, and the others cannot know why they may change nothing.
const PlanIdle = time.Hour

// InForce returns the mode that holds for a call at this time, and the plan as far as it was needed for that. It is
// what a tool or a person has set, else how the session starts, and never above Highest or Limit. An error means that
// the Store did not answer: the mode is unknown then.
func (s *State) InForce(ctx context.Context, now time.Time) (permission.Mode, Plan, error) {
	return s.InForceIn(ctx, Snapshot{}, now)
}

// InForceIn is InForce as of the moment of a Snapshot.
func (s *State) InForceIn(ctx context.Context, shown Snapshot, now time.Time) (permission.Mode, Plan, error) {
	begun := shown.memory != nil
	if !begun && s.Mode.memory != nil { // in one operation of the Store
		shown = Snapshot{memory: s.Mode.memory}
		shown.add(s.Mode.memory, s.Mode.key)
		shown.add(s.Limit.memory, s.Limit.key)
		if err := shown.read(ctx); err != nil {
			return permission.Default, Plan{}, err
		}
	}
	mode, err := s.Mode.In(ctx, shown)
	var plan Plan
	var limit Limit
	if err == nil {
		limit, err = s.Limit.In(ctx, shown)
	}
	start, highest := limit.Of(s.Modes)
	if err == nil && (mode == permission.Plan || mode == permission.Default && start == permission.Plan) {
		plan, err = s.Plan.In(ctx, shown)
	}
	if err != nil {
		return permission.Default, Plan{}, err
	}
	if mode == permission.Plan && s.Shared && now.Sub(plan.Last) > PlanIdle {
		mode = plan.Before
	}
	if mode == permission.Default && (start != permission.Plan || !plan.Left) {
		mode = start
	}
	mode = mode.AtMost(highest)
	if s.Above != nil && !begun { // at the moment of a Snapshot Highest was that mode
		mode = mode.AtMost(s.Above(ctx))
	}
	return mode, plan, nil
}
