"""A private HTCondor pool inside a chroot, driven from outside.

CONDOR_CHROOT names the chroot (htcondor-chroot.sh makes one). Configuration and programs are copied to
/srv/anchor in it; each pool keeps its state in a folder of its own under /srv. Only the pool's own
processes are ever signalled: its master, found by its pid file, and that master's children.
"""
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ANCHOR = "/srv/anchor"      # paths in capitals are as seen inside the chroot
USER = "alice"              # owns the jobs; the daemons refuse jobs of root
CYCLE_DONE = "Finished Negotiation Cycle"


def chroot_dir():
    """The chroot of CONDOR_CHROOT, or exit with what is missing."""
    value = os.environ.get("CONDOR_CHROOT")
    if not value:
        sys.exit("CONDOR_CHROOT is not set: it names the chroot that htcondor-chroot.sh made")
    root = Path(value).resolve()
    if not (root / "usr/sbin/condor_master").exists():
        sys.exit(f"no HTCondor in {root}: run htcondor-chroot.sh {root}")
    if os.geteuid() != 0:
        sys.exit("chroot needs root")
    return root


def wait_until(condition, seconds, every=0.1):
    """Poll until condition() is true; False when the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(every)
    return False


class Pool:
    """One pool: a configuration file under /srv/anchor and a state folder, its LOCAL_DIR."""

    def __init__(self, config, state):
        self.root = chroot_dir()
        self.config = f"{ANCHOR}/{config}"
        self.state = state
        self.negotiator_log = self.outside(f"{state}/log/NegotiatorLog")
        self.master_pid_file = self.outside(f"{state}/run/master.pid")
        self._mount()
        self._add_user()

    def outside(self, path):
        """The path outside the chroot of a path inside it."""
        return self.root / path.lstrip("/")

    def _mount(self):
        for name in ("proc", "dev", "sys"):
            if not os.path.ismount(self.root / name):
                subprocess.run(["mount", "--bind", f"/{name}", self.root / name], check=True)

    def _add_user(self):
        known = subprocess.run(["chroot", self.root, "id", USER], capture_output=True)
        if known.returncode != 0:
            subprocess.run(["chroot", self.root, "useradd", "--create-home", USER], check=True)

    # ---- files and programs

    def install(self, folder, *names):
        """Copy files of a folder, by their relative names, to /srv/anchor."""
        for name in names:
            target = self.outside(f"{ANCHOR}/{name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, target)

    def write(self, path, text):
        """Write a file inside the chroot."""
        target = self.outside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def tool(self, *command):
        """Run a program in the chroot against this pool; what it printed."""
        full = ["chroot", self.root, "env", f"CONDOR_CONFIG={self.config}", *command]
        done = subprocess.run(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def tool_as_user(self, *command):
        """The same as the unprivileged user; fails loudly."""
        line = f"CONDOR_CONFIG={self.config} {shlex.join(command)}"
        done = subprocess.run(["chroot", self.root, "su", USER, "-c", line],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{line}\n{done.stdout}")
        return done.stdout

    def advertise(self, command, path, *options):
        """Send a file of ads to the collector; what condor_advertise said."""
        said = self.tool("condor_advertise", "-tcp", "-multiple", *options, command, path)
        return said.strip()

    # ---- processes

    def master(self):
        """The pid of this pool's master, None when it does not run."""
        try:
            pid = int(self.master_pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            same_root = os.readlink(f"/proc/{pid}/root") == str(self.root)
        except (OSError, ValueError):
            return None
        pid_file = f"{self.state}/run/master.pid"
        return pid if same_root and pid_file in command else None

    def daemon(self, name):
        """The pid of a daemon that this pool's master started, None when there is none."""
        master = self.master()
        if master is None:
            return None
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_text(errors="replace")
                parent = int(stat.rsplit(")", 1)[1].split()[1])
                if parent == master and os.readlink(entry / "exe").endswith(f"/condor_{name}"):
                    return int(entry.name)
            except OSError:     # it ended meanwhile
                continue
        return None

    @contextlib.contextmanager
    def running(self):
        """A fresh pool, its negotiator off; stopped at the end, whatever happens."""
        self.stop()     # of a run that was killed
        try:
            self._start()
            yield
        finally:
            self.stop()

    def _start(self):
        """Start with empty queue, accountant and collector."""
        state = self.outside(self.state)
        shutil.rmtree(state, ignore_errors=True)
        for name in ("log", "lock", "run", "spool", "execute", "cred"):
            (state / name).mkdir(parents=True)
        subprocess.run(["chroot", self.root, "chown", "-R", "condor:condor", self.state], check=True)
        said = self.tool("/usr/sbin/condor_master", "-pidfile", f"{self.state}/run/master.pid")
        # A first cycle that finds the collector not up yet is abandoned, so its end is nothing to wait for.
        if not wait_until(self._up, 60):
            raise RuntimeError(f"the pool does not start: {said}\nsee {state}/log")
        self.negotiator_off()

    def _up(self):
        """Whether the negotiator began its first cycle and the collector answers."""
        return "Started Negotiation Cycle" in self.log() and "Error" not in self.tool("condor_status", "-any")

    def stop(self):
        """Fast shutdown of our own master, which takes its children along."""
        master = self.master()
        if master is None:
            return
        os.kill(master, signal.SIGQUIT)
        if not wait_until(lambda: self.master() is None, 60):
            raise RuntimeError(f"condor_master, pid {master}, does not end")

    def negotiator_off(self):
        """Stop the negotiator and wait until it is gone; the master will not restart it."""
        self.tool("condor_off", "-fast", "-daemon", "negotiator")
        if wait_until(lambda: self.daemon("negotiator") is None, 5):
            return
        negotiator = self.daemon("negotiator")
        if negotiator is not None:
            os.kill(negotiator, signal.SIGKILL)
        if not wait_until(lambda: self.daemon("negotiator") is None, 20):
            raise RuntimeError("the negotiator does not end")

    def cycle_done(self):
        """Whether the negotiator's log shows a finished cycle."""
        return CYCLE_DONE in self.log()

    def log(self):
        """The negotiator's log."""
        try:
            return self.negotiator_log.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def run_cycle(self, seconds, accountant_log=None):
        """Turn the negotiator on with this history, or none, and an empty log; wait for the end of its first cycle."""
        accountant = self.outside(f"{self.state}/spool/Accountantnew.log")
        accountant.unlink(missing_ok=True)
        if accountant_log is not None:
            accountant.write_text(accountant_log)
            self.tool("chown", "condor:condor", f"{self.state}/spool/Accountantnew.log")
        self.negotiator_log.write_text("")
        self.tool("condor_on", "-daemon", "negotiator")
        if not wait_until(self.cycle_done, seconds, every=0.25):
            raise RuntimeError(f"no cycle ended within {seconds} s, see {self.negotiator_log}")

    def idle_jobs_advertised(self):
        """The sum of IdleJobs over all submitter ads."""
        said = self.tool("condor_status", "-submitters", "-af", "IdleJobs")
        return sum(int(word) for word in said.split() if word.isdigit())
