//! `use FEATURE : ...` that starts a daemon or runs a program on the host. The agents of nodes run the startd's cron jobs. For the
//! rest there is no host in Slotwright: each template's advice says what does the same on a cluster.

use super::Template;

const fn feature(name: &'static str, text: &'static str, advice: &'static str) -> Template {
    cron(name, text).instead(advice)
}

/// A template of cron jobs, which agents run.
const fn cron(name: &'static str, text: &'static str) -> Template {
    Template::of("FEATURE", name, text)
}

const SCHEDD_CRON: &str =
    "the operator runs no programs: a Kubernetes CronJob can do the same and label or annotate what it finds";
const CLOUD: &str = "cloud providers label nodes with instance type, region and zone (node.kubernetes.io/instance-type, \
     topology.kubernetes.io/region, topology.kubernetes.io/zone): refer to those";
const CREDENTIALS: &str =
    "credentials reach a job as Secrets or projected service account tokens in its pod template";
const CONFIG: &str = "configuration is changed by writing NodePolicy, Negotiator and the other objects; Kubernetes RBAC \
     says who may";
const METRICS: &str = "the operator serves Prometheus metrics itself";

pub(super) const TEMPLATES: &[Template] = &[
    cron(
        "Monitor",
        "if ! $(5?)
  error : use FEATURE : Monitor needs a name, a mode, a period, a program, and at least one metric
endif
STARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) $(1)_MONITOR
STARTD_CRON_$(1)_MONITOR_MODE = $(2)
STARTD_CRON_$(1)_MONITOR_PERIOD = $(3)
STARTD_CRON_$(1)_MONITOR_EXECUTABLE = $(4)
STARTD_CRON_$(1)_MONITOR_METRICS = $(5+)
",
    ),
    cron(
        "ContinuousCronHook",
        "if ! $(3?)
  error : use FEATURE : ContinuousCronHook needs STARTD_CRON or SCHEDD_CRON, a tag, and a program
endif
$(1)_JOBLIST = $($(1)_JOBLIST) $(2)
$(1)_$(2)_MODE = WaitForExit
$(1)_$(2)_PERIOD = 0
$(1)_$(2)_EXECUTABLE = $(3)
if $(4?)
  $(1)_$(2)_ARGS = $(4)
endif
",
    ),
    cron(
        "OneShotCronHook",
        "if ! $(3?)
  error : use FEATURE : OneShotCronHook needs STARTD_CRON or SCHEDD_CRON, a tag, and a program
endif
$(1)_JOBLIST = $($(1)_JOBLIST) $(2)
$(1)_$(2)_MODE = OneShot
$(1)_$(2)_KILL = true
$(1)_$(2)_RECONFIG_RERUN = true
$(1)_$(2)_EXECUTABLE = $(3)
if $(4?)
  $(1)_$(2)_ARGS = $(4)
endif
",
    ),
    cron(
        "PeriodicCronHook",
        "if ! $(4?)
  error : use FEATURE : PeriodicCronHook needs STARTD_CRON or SCHEDD_CRON, a tag, a period, and a program
endif
$(1)_JOBLIST = $($(1)_JOBLIST) $(2)
$(1)_$(2)_MODE = Periodic
$(1)_$(2)_PERIOD = $(3)
$(1)_$(2)_EXECUTABLE = $(4)
if $(5?)
  $(1)_$(2)_ARGS = $(5)
endif
",
    ),
    cron("StartdCronContinuous", "use FEATURE : ContinuousCronHook(STARTD_CRON, $(0))\n"),
    cron("StartdCronOneShot", "use FEATURE : OneShotCronHook(STARTD_CRON, $(0))\n"),
    cron("StartdCronPeriodic", "use FEATURE : PeriodicCronHook(STARTD_CRON, $(0))\n"),
    feature("ScheddCronContinuous", "use FEATURE : ContinuousCronHook(SCHEDD_CRON, $(0))\n", SCHEDD_CRON),
    feature("ScheddCronOneShot", "use FEATURE : OneShotCronHook(SCHEDD_CRON, $(0))\n", SCHEDD_CRON),
    feature("ScheddCronPeriodic", "use FEATURE : PeriodicCronHook(SCHEDD_CRON, $(0))\n", SCHEDD_CRON),
    feature(
        "CommonCloudAttributesAWS",
        "use FEATURE : StartdCronOneShot(cloud, $(LIBEXEC)/common-cloud-attributes-aws.py, $(0))
STARTD_CRON_cloud_PREFIX = Cloud
",
        CLOUD,
    ),
    feature(
        "CommonCloudAttributesGoogle",
        "use FEATURE : StartdCronOneShot(cloud, $(LIBEXEC)/common-cloud-attributes-google.py, $(0))
STARTD_CRON_cloud_PREFIX = Cloud
",
        CLOUD,
    ),
    feature(
        "ChildCollector",
        "COLLECTOR$(1) = $(COLLECTOR)
if $(2?)
  COLLECTOR$(1)_ARGS = -p $(2)
else
  COLLECTOR$(1)_ARGS = -sock collector$(1)
endif
COLLECTOR$(1).COLLECTOR_NAME = Collector$(1)
COLLECTOR$(1).CONDOR_VIEW_HOST = $(TOP_COLLECTOR_HOST)
COLLECTOR$(1).CCB_RECONNECT_FILE = $(SPOOL)/Collector$(1).ccb_reconnect
DAEMON_LIST = $(DAEMON_LIST) COLLECTOR$(1)
TOP_COLLECTOR_HOST = $(COLLECTOR_HOST)
",
        "the Kubernetes API server is the collector: there is no tree of collectors to build",
    ),
    feature(
        "Adstash",
        "ADSTASH_SCHEDD_HISTORY = True
DAEMON_LIST = $(DAEMON_LIST) ADSTASH
",
        "ship the operator's logs and events to Elasticsearch with the cluster's own log collector",
    ),
    feature("Ganglia", "DAEMON_LIST = $(DAEMON_LIST) GANGLIAD\n", METRICS),
    feature(
        "Metricd",
        "DAEMON_LIST = $(DAEMON_LIST) METRICD
metricd_port_is_shared_port = $(PROMETHEUS_HTTP_PORT:0) == $(SHARED_PORT_PORT:0)
if $INT(metricd_port_is_shared_port)
  METRICD_ARGS = -sock metricd
  SHARED_PORT_HTTP_FORWARDING_ID = metricd
endif
",
        METRICS,
    ),
    feature(
        "Librarian",
        "DAEMON_LIST = $(DAEMON_LIST) LIBRARIAN
USING_LIBRARIAN = True
if $(1?)
  LIBRARIAN_MAX_DATABASE_SIZE = $(1)
endif
if $(2?)
  LIBRARIAN_DATABASE = $(2)
endif
",
        "finished jobs stay as HTCJob objects until they are deleted",
    ),
    feature(
        "KRB",
        "SEC_CREDENTIAL_DIRECTORY_KRB = /var/lib/condor/krb_credentials
DAEMON_LIST = $(DAEMON_LIST) CREDMON_KRB
SEC_CREDENTIAL_PRODUCER = $(LIBEXEC)/cred_producer_krb
SEC_CREDENTIAL_MONITOR_KRB_LOG = $(LOG)/CredMonKrbLog
AUTO_INCLUDE_CREDD_IN_DAEMON_LIST = True
USE_KEYRING_SESSIONS = True
",
        CREDENTIALS,
    ),
    feature(
        "OAUTH",
        "SEC_CREDENTIAL_DIRECTORY_OAUTH = /var/lib/condor/oauth_credentials
CREDMON_OAUTH_LOG = $(LOG)/CredMonOAuthLog
DAEMON_LIST = $(DAEMON_LIST) CREDMON_OAUTH
AUTO_INCLUDE_CREDD_IN_DAEMON_LIST = True
TRUST_CREDENTIAL_DIRECTORY = True
",
        CREDENTIALS,
    ),
    feature(
        "Remote_Runtime_Config",
        "ENABLE_RUNTIME_CONFIG = True
ALLOW_CONFIG = $(ALLOW_ADMINISTRATOR)
if $(0#)
  SETTABLE_ATTRS_CONFIG = $(SETTABLE_ATTRS_CONFIG) $(0)
endif
",
        CONFIG,
    ),
    feature(
        "Remote_Config",
        "ENABLE_PERSISTENT_CONFIG = True
PERSISTENT_CONFIG_DIR = $(SPOOL)
use FEATURE : Remote_Runtime_Config($(0))
",
        CONFIG,
    ),
    feature(
        "PelicanCache",
        "PELICANCACHE = /usr/bin/pelican
DAEMON_LIST = $(DAEMON_LIST) PELICANCACHE
PELICANCACHE_LOG = $(LOG)/PelicanCacheLog
PELICANCACHE_SIZE = $(1:256GB)
PELICANCACHE_RUNLOCATION = $(2:$(LOCAL_DIR)/localcache)
PELICANCACHE_FEDERATION = $(3:osg-htc.org)
PELICANCACHE_HIGHWATERMARKPERCENTAGE = 95
PELICANCACHE_LOWWATERMARKPERCENTAGE = 85
PELICANCACHE_ARGS = serve -d --module localcache -L $(PELICANCACHE_LOG) -f $(PELICANCACHE_FEDERATION)
PELICANCACHE_ENVIRONMENT @=end
  PELICAN_SERVER_ENABLEUI=false
  PELICAN_LOCALCACHE_SIZE=$(PELICANCACHE_SIZE)
  PELICAN_LOCALCACHE_RUNLOCATION=$(PELICANCACHE_RUNLOCATION)
  PELICAN_LOCALCACHE_HIGHWATERMARKPERCENTAGE=$(PELICANCACHE_HIGHWATERMARKPERCENTAGE)
  PELICAN_LOCALCACHE_LOWWATERMARKPERCENTAGE=$(PELICANCACHE_LOWWATERMARKPERCENTAGE)
@end
STARTD_ENVIRONMENT = ;NEAREST_CACHE=unix:/$(PELICANCACHE_RUNLOCATION)/cache.sock;$(STARTD_ENVIRONMENT)
",
        "run the cache as a DaemonSet and give its socket to jobs as a volume of the pod template",
    ),
    // The template sets up an access point for pilots on other clusters, which means nothing to a Pool. So it sets
    // only what a test for the feature looks at.
    feature(
        "HPC_Annex",
        "HPC_ANNEX_ENABLED = true\n",
        "nodes join the cluster, by its autoscaler or by hand, and every node is a machine of the pool",
    ),
];
