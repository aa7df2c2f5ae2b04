// What programs do with Nomad's Go client, against an agent that runs: each step is printed, and the last line
// says how many of them failed. The agent is the one of NOMAD_ADDR.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"
)

const web = `
job "go" {
  meta { colour = "COLOUR" }
  group "g" {
    network {
      port "http" {}
    }
    scaling {
      min = 1
      max = 3
    }
    update {
      min_healthy_time = "100ms"
    }
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo a line; exec sleep 1000"]
      }
      service {
        name     = "go-web"
        port     = "http"
        provider = "nomad"
      }
      action "greet" {
        command = "/bin/echo"
        args    = ["hello"]
      }
    }
  }
}`

const parameterized = `
job "go-parameterized" {
  type = "batch"
  parameterized {
    payload       = "optional"
    meta_required = ["who"]
  }
  group "g" {
    task "main" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}`

const periodic = `
job "go-periodic" {
  type = "batch"
  periodic { crons = ["0 0 1 1 *"] }
  group "g" {
    task "main" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}`

type session struct {
	*api.Client
	steps, failed int
	alloc         *api.Allocation
	node          string
}

// step does one step.
func (s *session) step(name string, what func() error) {
	s.steps++
	if err := what(); err != nil {
		s.failed++
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	fmt.Println("ok    ", name)
}

// until asks again until the answer is there.
func until(what func() bool) error {
	for range 200 {
		if what() {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("it did not come to that")
}

// want says what is wrong with an answer.
func want(err error, holds bool, shown any) error {
	if err == nil && !holds {
		return fmt.Errorf("unexpected: %+v", shown)
	}
	return err
}

// refused is an error with these words.
func refused(err error, words string) error {
	if err == nil || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("not refused with %q: %v", words, err)
	}
	return nil
}

func (s *session) parsed(text string) *api.Job {
	job, err := s.Jobs().ParseHCL(text, true)
	s.step("Jobs.ParseHCL", func() error { return err })
	return job
}

func (s *session) running(job string) func() bool {
	return func() bool {
		allocs, _, err := s.Jobs().Allocations(job, false, nil)
		if err != nil || len(allocs) == 0 || allocs[0].ClientStatus != "running" {
			return false
		}
		s.alloc, _, err = s.Allocations().Info(allocs[0].ID, nil)
		return err == nil
	}
}

func (s *session) jobs() {
	job := s.parsed(strings.ReplaceAll(web, "COLOUR", "red"))
	s.step("Jobs.Validate", func() error {
		got, _, err := s.Jobs().Validate(job, nil)
		return want(err, got != nil && got.DriverConfigValidated && got.Error == "", got)
	})
	s.step("Jobs.Plan", func() error {
		got, _, err := s.Jobs().Plan(job, true, nil)
		return want(err, got != nil && got.Diff.Type == "Added" && got.Annotations != nil, got)
	})
	s.step("Jobs.EnforceRegister", func() error {
		_, _, err := s.Jobs().EnforceRegister(job, 0, nil)
		return err
	})
	s.step("Jobs.EnforceRegister again", func() error {
		_, _, err := s.Jobs().EnforceRegister(job, 0, nil)
		return refused(err, "Enforcing job modify index 0")
	})
	s.step("it runs", func() error { return until(s.running("go")) })
	s.step("Jobs.List", func() error {
		got, meta, err := s.Jobs().List(nil)
		return want(err, len(got) == 1 && got[0].JobSummary != nil && meta.LastIndex > 0, got)
	})
	s.step("Jobs.PrefixList", func() error {
		got, _, err := s.Jobs().PrefixList("x")
		return want(err, len(got) == 0, got)
	})
	s.step("Jobs.List with a filter", func() error {
		got, _, err := s.Jobs().List(&api.QueryOptions{Filter: `Type == "service" and "go" in ID`})
		return want(err, len(got) == 1, got)
	})
	s.step("Jobs.Info unknown", func() error {
		_, _, err := s.Jobs().Info("nothing", nil)
		return refused(err, "404")
	})
	s.step("Jobs.Summary", func() error {
		got, _, err := s.Jobs().Summary("go", nil)
		return want(err, got != nil && got.Summary["g"].Running == 1, got)
	})
	s.step("Jobs.Evaluations", func() error {
		got, _, err := s.Jobs().Evaluations("go", nil)
		return want(err, len(got) > 0, got)
	})
	s.step("Jobs.Services", func() error {
		got, _, err := s.Jobs().Services("go", nil)
		return want(err, len(got) == 1 && got[0].ServiceName == "go-web", got)
	})
	s.step("Jobs.ForceEvaluate", func() error {
		_, _, err := s.Jobs().ForceEvaluate("go", nil)
		return err
	})
	s.step("a blocking query", func() error {
		const wait = 300 * time.Millisecond
		return until(func() bool {
			_, meta, err := s.Jobs().Info("go", nil)
			if err != nil {
				return false
			}
			began := time.Now()
			_, _, err = s.Jobs().Info("go", &api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: wait})
			return err == nil && time.Since(began) >= wait
		})
	})
}

func (s *session) versions() {
	job := s.parsed(strings.ReplaceAll(web, "COLOUR", "blue"))
	s.step("Jobs.RegisterOpts with a submission", func() error {
		_, _, err := s.Jobs().RegisterOpts(job, &api.RegisterOptions{
			Submission: &api.JobSubmission{Source: web, Format: "hcl2"},
		}, nil)
		return err
	})
	s.step("Jobs.Submission", func() error {
		got, _, err := s.Jobs().Submission("go", 1, nil)
		return want(err, got != nil && got.Source == web, got)
	})
	s.step("Jobs.Versions", func() error {
		jobs, diffs, _, err := s.Jobs().Versions("go", true, nil)
		return want(err, len(jobs) == 2 && len(diffs) == 1 && diffs[0].Type == "Edited", jobs)
	})
	s.step("Jobs.TagVersion", func() error {
		_, err := s.Jobs().TagVersion("go", 0, "golden", "the first", nil)
		return err
	})
	s.step("Jobs.VersionByTag", func() error {
		got, _, err := s.Jobs().VersionByTag("go", "golden", nil)
		return want(err, got != nil && *got.Version == 0, got)
	})
	s.step("Jobs.Stable", func() error {
		_, _, err := s.Jobs().Stable("go", 0, true, nil)
		return err
	})
	s.step("Jobs.Revert", func() error {
		_, _, err := s.Jobs().Revert("go", 0, nil, nil, "", "")
		return err
	})
	s.step("Jobs.UntagVersion", func() error {
		_, err := s.Jobs().UntagVersion("go", "golden", nil)
		return err
	})
	s.step("Jobs.LatestDeployment", func() error {
		return until(func() bool {
			got, _, err := s.Jobs().LatestDeployment("go", nil)
			return err == nil && got != nil && got.Status == "successful"
		})
	})
	s.step("Deployments.List", func() error {
		got, _, err := s.Deployments().List(nil)
		return want(err, len(got) >= 2, got)
	})
	s.step("Jobs.Scale", func() error {
		two := 2
		_, _, err := s.Jobs().Scale("go", "g", &two, "more", false, nil, nil)
		return err
	})
	s.step("Jobs.Scale above its bounds", func() error {
		many := 9
		_, _, err := s.Jobs().Scale("go", "g", &many, "", false, nil, nil)
		return refused(err, "maximum")
	})
	s.step("Jobs.ScaleStatus", func() error {
		return until(func() bool {
			got, _, err := s.Jobs().ScaleStatus("go", nil)
			return err == nil && got.TaskGroups["g"].Running == 2 && len(got.TaskGroups["g"].Events) == 1
		})
	})
	s.step("Scaling.ListPolicies", func() error {
		got, _, err := s.Scaling().ListPolicies(nil)
		if err != nil || len(got) != 1 {
			return want(err, false, got)
		}
		policy, _, err := s.Scaling().GetPolicy(got[0].ID, nil)
		return want(err, policy != nil && *policy.Max == 3, policy)
	})
}

func (s *session) kindsOfJobs() {
	for _, text := range []string{parameterized, periodic} {
		job := s.parsed(text)
		s.step("Jobs.Register "+*job.ID, func() error {
			_, _, err := s.Jobs().Register(job, nil)
			return err
		})
	}
	s.step("Jobs.Dispatch", func() error {
		got, _, err := s.Jobs().Dispatch("go-parameterized", map[string]string{"who": "me"}, []byte("hello"), "", nil)
		if err != nil {
			return err
		}
		return until(func() bool {
			child, _, err := s.Jobs().Info(got.DispatchedJobID, nil)
			return err == nil && *child.Status == "dead"
		})
	})
	s.step("Jobs.PeriodicForce", func() error {
		_, _, err := s.Jobs().PeriodicForce("go-periodic", nil)
		return err
	})
}

func (s *session) allocations() {
	s.step("the allocation", func() error { return until(s.running("go")) })
	s.step("Allocations.List", func() error {
		got, _, err := s.Allocations().List(&api.QueryOptions{PerPage: 1})
		return want(err, len(got) == 1, got)
	})
	s.step("Allocations.Stats", func() error {
		return until(func() bool {
			got, err := s.Allocations().Stats(s.alloc, nil)
			return err == nil && got.Tasks["main"] != nil
		})
	})
	s.step("Allocations.Checks", func() error {
		_, err := s.Allocations().Checks(s.alloc.ID, nil)
		return err
	})
	s.step("Allocations.Services", func() error {
		got, _, err := s.Allocations().Services(s.alloc.ID, nil)
		return want(err, len(got) == 1, got)
	})
	s.step("Allocations.Exec", func() error {
		var out, errs bytes.Buffer
		command := []string{"/bin/sh", "-c", "cat; exit 3"}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		code, err := s.Allocations().Exec(ctx, s.alloc, "main", false, command, strings.NewReader("echo"), &out, &errs, nil, nil)
		return want(err, code == 3 && out.String() == "echo", fmt.Sprint(code, out.String(), errs.String()))
	})
	s.step("Jobs.ActionExec", func() error {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		code, err := s.Jobs().ActionExec(ctx, s.alloc, "go", "main", false, nil, "greet", strings.NewReader(""), &out, &errs, nil, nil)
		return want(err, code == 0 && out.String() == "hello\n", fmt.Sprint(code, out.String(), errs.String()))
	})
	s.step("AllocFS.List", func() error {
		got, _, err := s.AllocFS().List(s.alloc, "/", nil)
		return want(err, len(got) >= 2, got)
	})
	log := "/alloc/logs/main.stdout.0"
	s.step("AllocFS.Stat", func() error {
		got, _, err := s.AllocFS().Stat(s.alloc, log, nil)
		return want(err, got != nil && got.Size == 7, got)
	})
	s.step("AllocFS.Cat", func() error {
		got, err := s.AllocFS().Cat(s.alloc, log, nil)
		if err != nil {
			return err
		}
		defer got.Close()
		text, err := io.ReadAll(got)
		return want(err, string(text) == "a line\n", string(text))
	})
	s.step("AllocFS.ReadAt", func() error {
		got, err := s.AllocFS().ReadAt(s.alloc, log, 2, 4, nil)
		if err != nil {
			return err
		}
		defer got.Close()
		text, err := io.ReadAll(got)
		return want(err, string(text) == "line", string(text))
	})
	s.step("AllocFS.Logs", func() error {
		stop := make(chan struct{})
		defer close(stop)
		frames, errs := s.AllocFS().Logs(s.alloc, true, "main", "stdout", "start", 0, stop, nil)
		return firstFrame(frames, errs, "a line\n")
	})
	s.step("AllocFS.Stream", func() error {
		stop := make(chan struct{})
		defer close(stop)
		frames, errs := s.AllocFS().Stream(s.alloc, log, "start", 0, stop, nil)
		return firstFrame(frames, errs, "a line\n")
	})
	s.step("Allocations.Signal", func() error { return s.Allocations().Signal(s.alloc, nil, "main", "SIGCONT") })
	s.step("Allocations.Restart", func() error { return s.Allocations().Restart(s.alloc, "main", nil) })
	s.step("Allocations.Stop", func() error {
		got, err := s.Allocations().Stop(s.alloc, nil)
		return want(err, got != nil && got.EvalID != "", got)
	})
}

func firstFrame(frames <-chan *api.StreamFrame, errs <-chan error, text string) error {
	for {
		select {
		case frame := <-frames:
			if frame == nil {
				return errors.New("the stream is over")
			}
			if !frame.IsHeartbeat() {
				return want(nil, string(frame.Data) == text, string(frame.Data))
			}
		case err := <-errs:
			return err
		case <-time.After(20 * time.Second):
			return errors.New("nothing came")
		}
	}
}

func (s *session) nodes() {
	s.step("Nodes.List", func() error {
		got, _, err := s.Nodes().List(nil)
		if err == nil && len(got) == 1 {
			s.node = got[0].ID
		}
		return want(err, len(got) == 1 && got[0].Drivers["raw_exec"].Healthy, got)
	})
	s.step("Nodes.Info", func() error {
		got, _, err := s.Nodes().Info(s.node, nil)
		return want(err, got != nil && got.NodeResources != nil && got.ReservedResources != nil, got)
	})
	s.step("Nodes.Stats", func() error {
		got, err := s.Nodes().Stats(s.node, nil)
		return want(err, got != nil && got.Memory.Total > 0 && len(got.CPU) > 0, got)
	})
	s.step("Nodes.Allocations", func() error {
		got, _, err := s.Nodes().Allocations(s.node, nil)
		return want(err, len(got) > 0, got)
	})
	s.step("Nodes.Meta.Apply", func() error {
		value := "r1"
		got, err := s.Nodes().Meta().Apply(&api.NodeMetaApplyRequest{Meta: map[string]*string{"rack": &value}}, nil)
		return want(err, got != nil && got.Meta["rack"] == "r1", got)
	})
	s.step("Nodes.ToggleEligibility", func() error {
		if _, err := s.Nodes().ToggleEligibility(s.node, false, nil); err != nil {
			return err
		}
		_, err := s.Nodes().ToggleEligibility(s.node, true, nil)
		return err
	})
	s.step("Nodes.UpdateDrain and MonitorDrain", func() error {
		spec := &api.DrainSpec{Deadline: time.Minute, IgnoreSystemJobs: true}
		got, err := s.Nodes().UpdateDrain(s.node, spec, false, nil)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		var last string
		for message := range s.Nodes().MonitorDrain(ctx, s.node, got.LastIndex, true) {
			last = message.Message
		}
		return want(ctx.Err(), strings.Contains(last, "complete") || strings.Contains(last, "All allocations"), last)
	})
	s.step("the drain is called off", func() error {
		_, err := s.Nodes().UpdateDrain(s.node, nil, true, nil)
		return err
	})
	s.step("it runs again", func() error { return until(s.running("go")) })
}

func (s *session) variables() {
	one := func(value string) *api.Variable {
		return &api.Variable{Path: "app/db", Items: api.VariableItems{"password": value}}
	}
	var made *api.Variable
	s.step("Variables.Create", func() (err error) {
		made, _, err = s.Variables().Create(one("hunter2"), nil)
		return err
	})
	s.step("Variables.Read", func() error {
		got, _, err := s.Variables().Read("app/db", nil)
		return want(err, got != nil && got.Items["password"] == "hunter2", got)
	})
	s.step("Variables.CheckedUpdate with another index", func() error {
		stale := one("x")
		stale.ModifyIndex = 1
		_, _, err := s.Variables().CheckedUpdate(stale, nil)
		var conflict api.ErrCASConflict
		return want(nil, errors.As(err, &conflict), err)
	})
	s.step("Variables.CheckedUpdate", func() error {
		made.Items["password"] = "other"
		_, _, err := s.Variables().CheckedUpdate(made, nil)
		return err
	})
	s.step("Variables.PrefixList", func() error {
		got, _, err := s.Variables().PrefixList("app/", nil)
		return want(err, len(got) == 1, got)
	})
	s.step("Variables.Peek nothing", func() error {
		got, _, err := s.Variables().Peek("nothing", nil)
		return want(err, got == nil, got)
	})
	s.step("Variables.Delete", func() error {
		_, err := s.Variables().Delete("app/db", nil)
		return err
	})
}

func (s *session) cluster() {
	s.step("Agent.Self", func() error {
		got, err := s.Agent().Self()
		return want(err, got != nil && got.Config != nil && got.Stats != nil, got)
	})
	for name, what := range map[string]func() (string, error){
		"NodeName": s.Agent().NodeName, "Datacenter": s.Agent().Datacenter, "Region": s.Agent().Region,
		"Leader": s.Status().Leader,
	} {
		s.step("Agent."+name, func() error {
			got, err := what()
			return want(err, got != "", got)
		})
	}
	s.step("Agent.Members", func() error {
		got, err := s.Agent().Members()
		return want(err, got != nil && len(got.Members) == 1, got)
	})
	s.step("Agent.Health", func() error {
		got, err := s.Agent().Health()
		return want(err, got != nil && got.Client.Ok, got)
	})
	s.step("Agent.Monitor", func() error {
		stop := make(chan struct{})
		defer close(stop)
		frames, errs := s.Agent().Monitor(stop, &api.QueryOptions{Params: map[string]string{"log_level": "debug"}})
		if _, _, err := s.Jobs().ForceEvaluate("go", nil); err != nil {
			return err
		}
		select {
		case <-frames:
			return nil
		case err := <-errs:
			return err
		case <-time.After(time.Second):
			// Nothing was logged, and that is no error.
			return nil
		}
	})
	s.step("Status.Peers", func() error {
		got, err := s.Status().Peers()
		return want(err, len(got) == 1, got)
	})
	s.step("Regions.List", func() error {
		got, err := s.Regions().List()
		return want(err, len(got) == 1, got)
	})
	s.step("Search.PrefixSearch", func() error {
		got, _, err := s.Search().PrefixSearch("go", contexts.Jobs, nil)
		return want(err, got != nil && len(got.Matches[contexts.Jobs]) >= 3, got)
	})
	s.step("Search.FuzzySearch", func() error {
		got, _, err := s.Search().FuzzySearch("param", contexts.All, nil)
		return want(err, got != nil && len(got.Matches[contexts.Jobs]) >= 1, got)
	})
	s.step("Services.List", func() error {
		got, _, err := s.Services().List(nil)
		return want(err, len(got) == 1 && got[0].Services[0].ServiceName == "go-web", got)
	})
	s.step("Services.Get", func() error {
		got, _, err := s.Services().Get("go-web", nil)
		return want(err, len(got) >= 1 && got[0].Port > 0, got)
	})
	s.step("Namespaces.List", func() error {
		got, _, err := s.Namespaces().List(nil)
		return want(err, len(got) >= 1 && got[0].Name == "default", got)
	})
	s.step("NodePools.List", func() error {
		got, _, err := s.NodePools().List(nil)
		return want(err, len(got) == 2, got)
	})
	s.step("Operator.SchedulerGetConfiguration", func() error {
		got, _, err := s.Operator().SchedulerGetConfiguration(nil)
		return want(err, got != nil && got.SchedulerConfig != nil, got)
	})
	s.step("Operator.MetricsSummary", func() error {
		got, _, err := s.Operator().MetricsSummary(nil)
		return want(err, got != nil && len(got.Gauges) > 0, got)
	})
	s.step("Keyring.List", func() error {
		got, _, err := s.Keyring().List(nil)
		return want(err, len(got) >= 1, got)
	})
	s.step("Evaluations.Count", func() error {
		got, _, err := s.Evaluations().Count(nil)
		return want(err, got != nil && got.Count > 0, got)
	})
	s.step("System.GarbageCollect", s.System().GarbageCollect)
	s.step("System.ReconcileSummaries", s.System().ReconcileSummaries)
}

func (s *session) events() {
	s.step("EventStream.Stream", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		topics := map[api.Topic][]string{api.TopicEvaluation: {"*"}}
		events, err := s.EventStream().Stream(ctx, topics, 0, nil)
		if err != nil {
			return err
		}
		if _, _, err := s.Jobs().ForceEvaluate("go", nil); err != nil {
			return err
		}
		for event := range events {
			if event.Err != nil {
				return event.Err
			}
			if !event.IsHeartbeat() {
				got, err := event.Events[0].Evaluation()
				return want(err, got != nil && got.JobID != "", event)
			}
		}
		return errors.New("the stream is over")
	})
}

func (s *session) endings() {
	for _, job := range []string{"go", "go-parameterized", "go-periodic"} {
		s.step("Jobs.Deregister "+job, func() error {
			_, _, err := s.Jobs().Deregister(job, true, nil)
			return err
		})
	}
	s.step("no job is left", func() error {
		return until(func() bool {
			got, _, err := s.Jobs().PrefixList("go")
			return err == nil && len(got) == 0
		})
	})
}

func main() {
	client, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s := &session{Client: client}
	s.jobs()
	s.versions()
	s.kindsOfJobs()
	s.allocations()
	s.nodes()
	s.variables()
	s.cluster()
	s.events()
	s.endings()
	fmt.Printf("{\"steps\": %d, \"failed\": %d}\n", s.steps, s.failed)
	if s.failed > 0 {
		os.Exit(1)
	}
}
