package testenv

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestEtcdClusterSurvivesAMember(t *testing.T) {
	ctx, members := testContext(t), StartEtcdCluster(t, 3)
	c := EtcdClient(t, members[0].URL, members[1].URL, members[2].URL)
	if _, err := c.Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	members[0].Kill()
	if members[0].State() == "" {
		t.Error("a killed member has no end state")
	}
	Eventually(t, 30*time.Second, func(ctx context.Context) error {
		_, err := c.Put(ctx, "k", "w")
		return err
	})
	members[0].Restart()
	own := EtcdClient(t, members[0].URL)
	if resp, err := own.Get(ctx, "k"); err != nil || len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "w" {
		t.Errorf("the restarted member says %v, %v; want k=w", resp, err)
	}
}

func TestEtcdPauseAndStop(t *testing.T) {
	e := StartEtcd(t)
	c := EtcdClient(t, e.URL)
	e.Pause()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Get(short, "k"); err == nil {
		t.Error("a paused server answered")
	}
	e.Resume()
	if _, err := c.Get(testContext(t), "k"); err != nil {
		t.Error(err)
	}
	e.Stop()
}

func TestNATSClusterKeepsAStream(t *testing.T) {
	ctx, servers := testContext(t), StartNATSCluster(t, 3, NATSConfig{})
	js, err := jetstream.New(servers[0].Connect())
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, 30*time.Second, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3})
		return err
	})
	if _, err := js.Publish(ctx, "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	servers[0].Kill()
	other, err := jetstream.New(servers[1].Connect())
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, 30*time.Second, func(ctx context.Context) error {
		s, err := other.Stream(ctx, "S")
		if err == nil && s.CachedInfo().State.Msgs != 1 {
			err = fmt.Errorf("%d messages; want 1", s.CachedInfo().State.Msgs)
		}
		return err
	})
}

func TestNATSRestartsOnItsData(t *testing.T) {
	ctx, s := testContext(t), StartNATS(t, NATSConfig{SyncAlways: true})
	js, err := jetstream.New(s.Connect())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart()
	js, err = jetstream.New(s.Connect())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(ctx, "S"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
