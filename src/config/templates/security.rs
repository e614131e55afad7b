//! `use SECURITY : ...`: who may talk to HTCondor's daemons. Kubernetes guards its API itself.

use super::Template;

const fn security(name: &'static str, text: &'static str) -> Template {
    Template::of("SECURITY", name, text).instead(
        "Kubernetes authenticates everyone and RBAC says who may do what; no daemon here listens to HTCondor's tools",
    )
}

pub(super) const TEMPLATES: &[Template] = &[
    security(
        "Host_Based",
        "ALLOW_ADMINISTRATOR = $(CONDOR_HOST)
ALLOW_READ = *
ALLOW_WRITE = $(FULL_HOSTNAME) $(IPV4_ADDRESS) $(IPV6_ADDRESS)
ALLOW_DAEMON = $(FULL_HOSTNAME) $(IPV4_ADDRESS) $(IPV6_ADDRESS)
ALLOW_NEGOTIATOR = $(CONDOR_HOST)
ALLOW_NEGOTIATOR_SCHEDD = $(ALLOW_NEGOTIATOR) $(FLOCK_NEGOTIATOR_HOSTS)
ALLOW_WRITE_COLLECTOR = $(ALLOW_WRITE) $(FLOCK_FROM)
ALLOW_WRITE_STARTD = $(ALLOW_WRITE) $(FLOCK_FROM)
ALLOW_READ_COLLECTOR = $(ALLOW_READ) $(FLOCK_FROM)
ALLOW_READ_STARTD = $(ALLOW_READ) $(FLOCK_FROM)
LEGACY_ALLOW_SEMANTICS = TRUE
",
    ),
    security(
        "User_Based",
        "if $(CondorIsAdmin)
  authuser = condor
else
  authuser = $(USERNAME)
endif
use SECURITY : recommended($(authuser))
if ! $(CondorIsAdmin)
  ALLOW_WRITE = $(authuser)@$(UID_DOMAIN)
endif
",
    ),
    security(
        "With_Authentication",
        "SEC_DEFAULT_AUTHENTICATION = required\nSEC_DEFAULT_INTEGRITY = required\n",
    ),
    security(
        "Strong",
        "SEC_DEFAULT_AUTHENTICATION = required
SEC_DEFAULT_ENCRYPTION = required
SEC_DEFAULT_INTEGRITY = required
",
    ),
    security("FIPS", "FIPS = True\nuse SECURITY : Strong\nSEC_DEFAULT_CRYPTO_METHODS = AES,3DES\n"),
    security("recommended", "use SECURITY : recommended_v24_0($(1+))\n"),
    security(
        "recommended_v24_0",
        "SECURITY_MODEL = 24.0
use SECURITY : Strong
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_CLIENT_AUTHENTICATION = OPTIONAL
ALLOW_ADMINISTRATOR = $(1:condor)@* condor@password $(2:root@*) $(3+)
ALLOW_DAEMON = $(1:condor)@*  condor@password
ALLOW_NEGOTIATOR = $(1:condor)@* condor@password
ALLOW_WRITE = *
ALLOW_READ = *
",
    ),
    security(
        "recommended_v9_0",
        "SECURITY_MODEL = 9.0
use SECURITY : Strong
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_READ_ENCRYPTION = OPTIONAL
SEC_READ_INTEGRITY = OPTIONAL
ALLOW_ADMINISTRATOR = $(1:condor)@* condor_pool@* $(2:root@*) $(3+)
ALLOW_DAEMON = $(1:condor)@*  condor_pool@*
ALLOW_NEGOTIATOR = $(1:condor)@* condor_pool@*
ALLOW_WRITE = *
ALLOW_READ = *
",
    ),
    security(
        "get_htcondor_idtokens",
        "use SECURITY : recommended
SEC_READ_AUTHENTICATION_METHODS = $(SEC_DEFAULT_AUTHENTICATION_METHODS),ANONYMOUS
SEC_CLIENT_AUTHENTICATION_METHODS = $(SEC_DEFAULT_AUTHENTICATION_METHODS),ANONYMOUS
TRUST_DOMAIN = $(CONDOR_HOST)
",
    ),
];
