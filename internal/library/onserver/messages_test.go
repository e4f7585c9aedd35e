package onserver

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
)

// The messages have fields of the API's messages, and mean the same: with all fields set, each goes through
// the JSON of protobuf and comes back as it was. Fields that protobuf does not know are an error.
func TestMessagesAreTheAPIs(t *testing.T) {
	for _, test := range []struct {
		ours   any
		theirs proto.Message
	}{
		{studyAnswer{}, &fantasiav1.GetStudyResponse{}},
		{studyAnswer{}, &fantasiav1.CreateStudyResponse{}},
		{trialAnswer{}, &fantasiav1.GetTrialResponse{}},
		{trialAnswer{}, &fantasiav1.CompleteTrialResponse{}},
		{trialAnswer{}, &fantasiav1.FailTrialResponse{}},
		{trialAnswer{}, &fantasiav1.ReleaseTrialResponse{}},
		{trialAnswer{}, &fantasiav1.EnqueueTrialResponse{}},
		{trialAnswer{}, &fantasiav1.AddTrialResponse{}},
		{suggestAnswer{}, &fantasiav1.SuggestTrialsResponse{}},
		{beatAnswer{}, &fantasiav1.HeartbeatTrialsResponse{}},
		{reportAnswer{}, &fantasiav1.AddMeasurementResponse{}},
		{trialsAnswer{}, &fantasiav1.ListTrialsResponse{}},
		{trialsAnswer{}, &fantasiav1.ListOptimalTrialsResponse{}},
		{curveAnswer{}, &fantasiav1.ListMeasurementsResponse{}},
		{createStudyRequest{}, &fantasiav1.CreateStudyRequest{}},
		{updateStudyRequest{}, &fantasiav1.UpdateStudyRequest{}},
		{nameRequest{}, &fantasiav1.GetStudyRequest{}},
		{nameRequest{}, &fantasiav1.GetTrialRequest{}},
		{nameRequest{}, &fantasiav1.ResumeStudyRequest{}},
		{suggestRequest{}, &fantasiav1.SuggestTrialsRequest{}},
		{beatRequest{}, &fantasiav1.HeartbeatTrialsRequest{}},
		{reportRequest{}, &fantasiav1.AddMeasurementRequest{}},
		{completeRequest{}, &fantasiav1.CompleteTrialRequest{}},
		{failRequest{}, &fantasiav1.FailTrialRequest{}},
		{releaseRequest{}, &fantasiav1.ReleaseTrialRequest{}},
		{enqueueRequest{}, &fantasiav1.EnqueueTrialRequest{}},
		{continueRequest{}, &fantasiav1.EnqueueTrialRequest{}},
		{addRequest{}, &fantasiav1.AddTrialRequest{}},
		{listRequest{}, &fantasiav1.ListTrialsRequest{}},
		{listRequest{}, &fantasiav1.ListOptimalTrialsRequest{}},
		{curveRequest{}, &fantasiav1.ListMeasurementsRequest{}},
	} {
		t.Run(string(test.theirs.ProtoReflect().Descriptor().Name()), func(t *testing.T) {
			want := reflect.New(reflect.TypeOf(test.ours))
			fill(t, want.Elem())
			text, err := json.Marshal(want.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal(text, test.theirs); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if text, err = protojson.Marshal(test.theirs); err != nil {
				t.Fatal(err)
			}
			got := reflect.New(want.Type().Elem())
			if err := json.Unmarshal(text, got.Interface()); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if diff := cmp.Diff(want.Interface(), got.Interface(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("through protobuf (-sent +received):\n%s", diff)
			}
		})
	}
}

// fill sets a value and all that is in it to something that is not its zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch to := v.Addr().Interface().(type) {
	case *trialState:
		*to = "TRIAL_STATE_COMPLETED"
	case *studyState:
		*to = "STUDY_STATE_FAILED"
	case *source:
		*to = "SOURCE_DESIGN"
	case *action:
		*to = "TRIAL_ACTION_PRUNE"
	case *seconds:
		*to = seconds(12500 * time.Millisecond)
	case *time.Time:
		*to = time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC)
	case *any:
		*to = 1.5
	default:
		fillKind(t, v)
	}
}

// fillKind is fill for what has no special form in JSON.
func fillKind(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if v.Type().Field(i).Anonymous { // its type has a lower-case name, so reflection may not set it whole
				field = reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
			}
			fill(t, field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("some"), value)
	case reflect.String:
		v.SetString("text of " + strings.ToLower(v.Type().Name()))
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(0.1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a message has a field of type %s, which the test does not know", v.Type())
	}
}

// Numbers that are not finite are as protobuf's JSON has them.
func TestNumbersThatAreNotFinite(t *testing.T) {
	const text = `["NaN","Infinity","-Infinity",0.5]`
	var list []number
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(list); err != nil || string(got) != text {
		t.Errorf("%s becomes %s, %v", text, got, err)
	}
}
