"""What people do with python-nomad, against an agent that runs: each step is printed, and the last line says how
many of them failed. The agent is the one of NOMAD_ADDR."""

import json
import os
import sys
import time
import traceback
from urllib.parse import urlparse

import nomad

HCL = """
job "python" {
  type = "service"
  group "g" {
    count = 1
    scaling {
      min = 1
      max = 3
    }
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo a line; exec sleep 1000"]
      }
    }
  }
}
"""

PARAMETERIZED = """
job "parameterized" {
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
}
"""

PERIODIC = """
job "periodic" {
  type = "batch"
  periodic { crons = ["0 0 1 1 *"] }
  group "g" {
    task "main" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}
"""


class Session:
    """Steps, in order; those that fail are counted."""

    def __init__(self):
        address = urlparse(os.environ["NOMAD_ADDR"])
        self.nomad = nomad.Nomad(host=address.hostname, port=address.port, timeout=10)
        self.steps = 0
        self.failed = 0
        self.alloc = None
        self.job = None

    def step(self, name, what):
        """Does one step. What it returns must be true."""
        self.steps += 1
        try:
            found = what()
            if not found:
                raise AssertionError(f"unexpected: {found!r}")
            print("ok    ", name)
            return found
        except Exception:  # pylint: disable=broad-except
            self.failed += 1
            print("FAILED", name)
            traceback.print_exc(limit=3, file=sys.stdout)
            return None

    def until(self, what):
        """Asks again until the answer is there."""
        for _ in range(200):
            found = what()
            if found:
                return found
            time.sleep(0.1)
        return None


def refused(what, words=""):
    """Whether something is refused in words."""
    try:
        what()
    except nomad.api.exceptions.BaseNomadException as why:
        text = getattr(why.nomad_resp, "text", str(why))
        return words in text
    return False


def jobs(s):
    """Jobs: parsing, planning, registering, and what becomes of them."""
    n = s.nomad
    s.job = s.step("jobs.parse", lambda: n.jobs.parse(HCL))
    s.step("validate.validate_job", lambda: n.validate.validate_job({"Job": s.job}).json()["DriverConfigValidated"])
    s.step("job.plan_job", lambda: n.job.plan_job("python", {"Job": s.job}, diff=True)["Diff"]["Type"] == "Added")
    made = s.step("job.register_job", lambda: n.job.register_job("python", {"Job": s.job}))
    s.step("evaluation.get_evaluation", lambda: s.until(
        lambda: n.evaluation.get_evaluation(made["EvalID"])["Status"] == "complete"))
    s.step("evaluation.get_allocations", lambda: n.evaluation.get_allocations(made["EvalID"]))
    s.step("evaluations.get_evaluations", lambda: n.evaluations.get_evaluations())
    s.step("evaluations.__contains__", lambda: made["EvalID"] in n.evaluations)
    s.step("jobs.get_jobs", lambda: [one["ID"] for one in n.jobs.get_jobs()] == ["python"])
    s.step("jobs.__contains__", lambda: "python" in n.jobs and "nothing" not in n.jobs)
    s.step("jobs.get_jobs prefix", lambda: n.jobs.get_jobs(prefix="pyt") and not n.jobs.get_jobs(prefix="x"))
    s.step("job.get_job", lambda: n.job.get_job("python")["Status"] in ("pending", "running"))
    s.step("job.get_job unknown", lambda: refused(lambda: n.job.get_job("nothing"), "job not found"))
    allocs = s.step("job.get_allocations", lambda: n.job.get_allocations("python"))
    s.alloc = allocs[0]["ID"]
    running = lambda: n.allocation.get_allocation(s.alloc)["ClientStatus"] == "running"
    s.step("allocation.get_allocation", lambda: s.until(running))
    s.step("job.get_summary", lambda: n.job.get_summary("python")["Summary"]["g"]["Running"] == 1)
    s.step("job.get_evaluations", lambda: n.job.get_evaluations("python"))
    s.step("job.get_deployments", lambda: n.job.get_deployments("python"))
    s.step("job.get_versions", lambda: len(n.job.get_versions("python")["Versions"]) == 1)
    s.step("job.evaluate_job", lambda: n.job.evaluate_job("python")["EvalID"])


def allocations(s):
    """Allocations, their files, logs and statistics."""
    n = s.nomad
    s.step("allocations.get_allocations", lambda: len(n.allocations.get_allocations()) == 1)
    s.step("allocations filter", lambda: n.allocations.get_allocations(filter_='ClientStatus == "running"'))
    s.step("allocations resources", lambda: n.allocations.get_allocations(resources=True)[0]["AllocatedResources"])
    names = lambda: {one["Name"] for one in n.client.ls.list_files(s.alloc)}
    s.step("client.ls", lambda: {"alloc", "main"} <= names())
    log = "/alloc/logs/main.stdout.0"
    s.step("client.cat", lambda: s.until(lambda: "a line" in n.client.cat.read_file(s.alloc, log)))
    s.step("client.read_at", lambda: n.client.read_at.read_file_offset(s.alloc, 2, 4, log) == "line")
    s.step("client.stat", lambda: n.client.stat.stat_file(s.alloc, log)["Size"] == 7)
    logs = lambda: n.client.stream_logs.stream(s.alloc, "main", "stdout", plain=True)
    s.step("client.stream_logs", lambda: "a line" in logs())
    s.step("client.stats", lambda: n.client.stats.read_stats()["Memory"]["Total"] > 0)
    usage = lambda: n.client.allocation.read_allocation_stats(s.alloc)["Tasks"]["main"]
    s.step("client.allocation.stats", lambda: s.until(usage))
    s.step("client.allocation.signal", lambda: n.client.allocation.signal_allocation(s.alloc, "SIGCONT") is not None)
    s.step("client.allocation.restart", lambda: n.client.allocation.restart_allocation(s.alloc) is not None)
    restarts = lambda: n.allocation.get_allocation(s.alloc)["TaskStates"]["main"]["Restarts"]
    s.step("restarts are counted", lambda: s.until(lambda: restarts() == 1))


def versions(s):
    """A new version, the way back, and deployments."""
    n = s.nomad
    s.job["TaskGroups"][0]["Tasks"][0]["Env"] = {"COLOUR": "blue"}
    s.step("a new version", lambda: n.jobs.register_job({"Job": s.job})["JobModifyIndex"])
    s.step("two versions", lambda: len(n.job.get_versions("python")["Versions"]) == 2)
    s.step("job.stable_job", lambda: n.job.stable_job("python", 0, True)["Index"])
    s.step("job.revert_job", lambda: n.job.revert_job("python", 0, 1)["EvalID"])
    s.step("job.revert_job checked", lambda: refused(lambda: n.job.revert_job("python", 0, 1), "version"))
    rollout = s.step("job.get_deployment", lambda: n.job.get_deployment("python"))
    s.step("deployment.get_deployment", lambda: n.deployment.get_deployment(rollout["ID"])["JobID"] == "python")
    s.step("deployment.get_allocations", lambda: isinstance(
        n.deployment.get_deployment_allocations(rollout["ID"]), list))
    s.step("deployments.get_deployments", lambda: len(n.deployments.get_deployments()) >= 2)
    status = lambda: n.deployment.get_deployment(rollout["ID"])["Status"]
    if s.step("deployment is under way", lambda: status() in ("running", "successful")) and status() == "running":
        s.step("deployment.pause", lambda: n.deployment.pause_deployment(rollout["ID"], True)["EvalID"] is not None)
        s.step("deployment.resume", lambda: n.deployment.pause_deployment(rollout["ID"], False)["EvalID"] is not None)
        s.step("deployment.fail", lambda: n.deployment.fail_deployment(rollout["ID"])["EvalID"])
        s.step("deployment failed", lambda: s.until(lambda: status() == "failed"))
    s.step("scaling.get_scaling_policies", lambda: n.scaling.get_scaling_policies(job="python"))
    policy = n.scaling.get_scaling_policies()[0]["ID"]
    s.step("scaling.get_scaling_policy", lambda: n.scaling.get_scaling_policy(policy)["Max"] == 3)


def kinds_of_jobs(s):
    """Parameterized and periodic jobs."""
    n = s.nomad
    parsed = n.jobs.parse(PARAMETERIZED)
    s.step("register parameterized", lambda: n.jobs.register_job({"Job": parsed}) is not None)
    dispatch = lambda: n.job.dispatch_job("parameterized", meta={"who": "me"})
    child = s.step("job.dispatch_job", dispatch)
    done = lambda: n.job.get_job(child["DispatchedJobID"])["Status"] == "dead"
    s.step("dispatched job ends", lambda: s.until(done))
    s.step("dispatch without its key", lambda: refused(lambda: n.job.dispatch_job("parameterized"), "who"))
    parsed_periodic = n.jobs.parse(PERIODIC)
    s.step("register periodic", lambda: n.jobs.register_job({"Job": parsed_periodic}) is not None)
    s.step("job.periodic_job", lambda: n.job.periodic_job("periodic")["EvalID"])


def node(s):
    """The node: what it is, and that it takes nothing for a while."""
    n = s.nomad
    nodes = s.step("nodes.get_nodes", lambda: n.nodes.get_nodes())
    own = nodes[0]["ID"]
    s.step("nodes.__contains__", lambda: own in n.nodes)
    s.step("node.get_node", lambda: n.node.get_node(own)["Drivers"]["raw_exec"]["Healthy"])
    s.step("node.get_allocations", lambda: n.node.get_allocations(own))
    ineligible = lambda: n.node.eligible_node(own, ineligible=True)["Index"]
    s.step("node.eligible_node", ineligible)
    s.step("node is ineligible", lambda: n.node.get_node(own)["SchedulingEligibility"] == "ineligible")
    s.step("node.eligible_node again", lambda: n.node.eligible_node(own, eligible=True)["Index"])
    drain = {"Deadline": 60_000_000_000, "IgnoreSystemJobs": True}
    s.step("node.drain_node_with_spec", lambda: n.node.drain_node_with_spec(own, drain)["Index"])
    is_eligible = lambda: n.node.get_node(own)["SchedulingEligibility"] == "eligible"
    s.step("drained node is ineligible", lambda: not is_eligible())
    s.step("drain is called off", lambda: n.node.drain_node_with_spec(own, {}, mark_eligible=True)["Index"])
    s.step("node is eligible", lambda: s.until(is_eligible))


def agent(s):
    """The agent, and the cluster of one."""
    n = s.nomad
    s.step("agent.get_agent", lambda: n.agent.get_agent()["config"])
    s.step("agent.get_members", lambda: n.agent.get_members()["Members"])
    s.step("agent.get_servers", lambda: n.agent.get_servers())
    s.step("status.leader", lambda: n.status.leader.get_leader())
    s.step("status.peers", lambda: n.status.peers.get_peers())
    s.step("regions.get_regions", lambda: n.regions.get_regions() == ["global"])
    s.step("metrics.get_metrics", lambda: n.metrics.get_metrics()["Gauges"])
    s.step("search.search", lambda: n.search.search("pyt", "jobs")["Matches"]["jobs"] == ["python"])
    s.step("search.fuzzy_search", lambda: n.search.fuzzy_search("yth", "jobs")["Matches"])
    s.step("namespaces.get_namespaces", lambda: n.namespaces.get_namespaces()[0]["Name"] == "default")
    s.step("namespace.get_namespace", lambda: n.namespace.get_namespace("default")["Name"] == "default")
    s.step("system.gc", lambda: n.system.initiate_garbage_collection())
    s.step("system.reconcile", lambda: n.system.reconcile_summaries())


def variables(s):
    """Variables, with check-and-set."""
    n = s.nomad
    payload = {"Items": {"user": "me", "password": "hunter2"}}
    made = s.step("variable.create_variable", lambda: n.variable.create_variable("app/db", payload))
    s.step("variable.get_variable", lambda: n.variable.get_variable("app/db")["Items"]["user"] == "me")
    stale = lambda: n.variable.create_variable("app/db", payload, cas=1)
    s.step("variable of another index", lambda: refused(stale))
    s.step("variables.get_variables", lambda: [one["Path"] for one in n.variables.get_variables("app/")] == ["app/db"])
    s.step("variable.delete_variable", lambda: n.variable.delete_variable("app/db", cas=made["ModifyIndex"]) is not None)
    s.step("variable is gone", lambda: refused(lambda: n.variable.get_variable("app/db")))


def events(s):
    """The event stream."""
    n = s.nomad
    thread, stop, queue = n.event.stream.get_stream(topic={"Job": "*"}, index=0, timeout=5.0)
    thread.start()
    s.step("an evaluation makes events", lambda: n.job.evaluate_job("python"))
    s.step("event.stream", lambda: queue.get(timeout=10)["Events"][0]["Topic"] == "Job")
    stop.set()


def endings(s):
    """Everything ends."""
    n = s.nomad
    s.step("allocation.stop_allocation", lambda: n.allocation.stop_allocation(s.alloc)["EvalID"])
    s.step("job.deregister_job", lambda: n.job.deregister_job("python")["EvalID"])
    s.step("job is dead", lambda: s.until(lambda: n.job.get_job("python")["Status"] == "dead"))
    for job in ("python", "parameterized", "periodic"):
        s.step(f"{job} is purged", lambda job=job: n.job.deregister_job(job, purge=True) is not None)
    gone = lambda: not [one for one in n.jobs.get_jobs() if one["ID"] in ("python", "parameterized", "periodic")]
    s.step("no job is left", lambda: s.until(gone))


def main():
    """Runs all of it."""
    session = Session()
    for part in (jobs, allocations, versions, kinds_of_jobs, node, agent, variables, events, endings):
        session.step(part.__name__, lambda part=part: part(session) is None)
    print(json.dumps({"steps": session.steps, "failed": session.failed}))
    sys.exit(1 if session.failed else 0)


main()
