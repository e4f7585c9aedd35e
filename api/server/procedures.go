package server

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// procedure is what the API's definition says of a procedure. The zero value is for those
// that it does not have.
type procedure struct {
	// readOnly: it changes nothing.
	readOnly bool
	// streams: it answers with a stream.
	streams bool
	// leaderOnly: only the leader can answer it: it writes, or reads what only the leader has.
	leaderOnly bool
	// suggests: it may wait for trials.
	suggests bool
	// parses: its request has a study file, which costs time and memory to read.
	parses bool
}

// procedures are the API's procedures, by path.
var procedures = func() map[string]procedure {
	all := map[string]procedure{}
	services := fantasiav1.File_fantasia_v1_fantasia_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			all["/"+string(services.Get(i).FullName())+"/"+string(m.Name())] = procedureOf(m)
		}
	}
	return all
}()

func procedureOf(m protoreflect.MethodDescriptor) procedure {
	options, _ := m.Options().(*descriptorpb.MethodOptions)
	leads, _ := proto.GetExtension(options, fantasiav1.E_LeaderOnly).(bool)
	// Streams only show: their level is not set, since that would let them be asked with GET.
	reads := m.IsStreamingServer() || options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
	return procedure{
		readOnly: reads, streams: m.IsStreamingServer(), leaderOnly: !reads || leads,
		suggests: m.Name() == "SuggestTrials", parses: m.Input().Fields().ByName("study_file") != nil,
	}
}
