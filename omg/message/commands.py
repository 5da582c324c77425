"""
Passwords in commands: behind an option of a program that takes one, and in the place where it expects one.

Not here: `--password …`, `curl -u` and what else has the same name in all programs (placed.py, forms.py). One rule: a
program is a row, for `-p` is a port to one and a password to another.
"""

from __future__ import annotations

from .hints import HintedRule, rule

SECRET_VALUE = r"(?P<q>[\"'])?(?!\[redacted)(?P<value>(?(q)[^\n\"']{3,200}|[^\s\"'|;&<>$(){}]{3,200}))"

# programs (`*`: their names go on), a hint at the option, the option
PASSWORD_OPTIONS = (
    ("mysql* mariadb*", "-p", r"-p"),
    ("7z 7za 7zr 7zz zip unzip rar unrar", "-p|-hp", r"-(?:h?p|P ?)"),
    ("sqlcmd bcp ipmitool mosquitto_* curlftpfs tsql", "-p", r"-P ?"),
    ("redis-cli valkey-cli keydb-cli", "-a|-pass", r"(?:-a|--pass) ?"),
    ("mongo* cqlsh cypher-shell beeline hdbsql impala-shell couchbase-cli cbimport cbexport sqoop artemis asadmin", "-p", r"-p ?"),
    ("rdesktop smbmap evil-winrm psexec* rabbitmqadmin useradd usermod hydra nxc crackmapexec iscsiadm twine imapsync", "-p", r"-p ?"),
    ("docker podman helm az oc cf vault op doctl registry skopeo buildah oras crane", "login", r"login\b[^\n|;]{0,100}?\s-p ?"),
    ("ldap*", "-w", r"-w ?"),
    ("snmp*", "-c|-a|-x", r"-[cAX] ?"),
    ("security", "-w|-p", r"-[wpP] "),
    ("openssl", "-k", r"-[kK] "),
    ("plink* pscp* psftp* putty*", "-pw", r"-pw "),
    ("xfreerdp* wlfreerdp* wfreerdp* cmdkey mstsc wmic net", "/p", r"/p(?:ass(?:word)?)?:"),
    ("signtool pvk2pfx", "/p|-p", r"[/-]p[io]? "),
    ("smbclient rpcclient smbget smbcacls", "%", r"-U ?[^\s%]{1,60}%"),
    ("lftp ncftp*", "-u", r"-u ?[^\s,]{1,60},[\"']?"),
    ("pdftk", "_pw", r"(?:user|owner|input)_pw "),
    ("nmcli iwctl", "pass|.psk", r"(?:password|[\w-]{1,24}\.psk|--passphrase) "),
)  # fmt: skip

# what stands before the password, and words of which one is in it
PASSWORD_ARGUMENTS = (
    ("net use", r"\bnet\s+use\s[^\n|;]{1,120}?\s/user:\S{1,60}\s+(?!/)"),
    ("net use", r"\bnet\s+use\s+(?:\w:\s+)?\\\\\S{1,100}\s+(?!/)(?=\S{1,200}\s+/user:)"),
    ("net user", r"\bnet\s+user\s+[\w.-]{1,40}\s+(?!/)"),
    ("vault login", r"\bvault\s+login\s+(?:-\S{1,30}\s+){0,2}(?!-)"),
    ("htpasswd", r"\bhtpasswd\s+-[a-zA-Z]{0,5}b[a-zA-Z]{0,5}\s+(?:-\w+\s+){0,3}\S{1,100}\s+\S{1,60}\s+"),
    ("wpa_passphrase", r"\bwpa_passphrase\s+(?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|\S{1,60})\s+"),
    ("setairportnetwork", r"-setairportnetwork\s+\w{1,8}\s+(?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|\S{1,60})\s+"),
    ("alias set|host add", r"\bmc\s+(?:alias|config\s+host)\s+(?:set|add)\s+\S{1,60}\s+\S{1,200}\s+\S{1,60}\s+"),
    ("rabbitmqctl", r"\brabbitmqctl\s+(?:-\S{1,40}\s+){0,3}(?:add_user|change_password|authenticate_user)\s+\S{1,60}\s+"),
    ("rclone", r"\brclone\s+obscure\s+(?!-)"),
    ("openssl|mkpasswd", r"\b(?:openssl\s+passwd|mkpasswd)\s+(?:-\S{1,20}\s+){0,3}(?!-)"),
    ("reset-admin", r"\breset-admin-password\s+(?:-\S{1,40}\s+){0,3}(?!-)"),
    ("ansible-vault", r"\bansible-vault\s+encrypt_string\s+(?:-\S{1,60}\s+){0,3}(?!-)"),
    ("bw ", r"\bbw\s+(?:unlock|login\s+\S{3,80}@\S{3,80})\s+(?!-)"),
)  # fmt: skip


def _of_programs(programs: str, hint: str, option: str) -> HintedRule:
    names = programs.split()
    called = "|".join(name.replace("*", r"[\w-]{0,12}+") for name in names)
    hints = "|".join(name.rstrip("*") for name in names)
    return rule(
        f"{hints} & {hint}", "password", rf"\b(?i:{called})\b[^\n|;]{{0,200}}?\s{option}{SECRET_VALUE}"
    )


# "twine upload -u rolf -p …": who says who he is by -u says by -p what he knows; of a port it has no letter
LOGIN_BY_OPTIONS = (
    r"\s-(?:u|U|-user(?:name)?)[ =]?[\"']?[^\s\"'-][^\s\"']{0,60}[\"']?\s(?:[^\n|;]{0,80}?\s)?-[pP] ?(?=[^\s:=/]{5,80}(?:\s|$))(?=\S{0,60}[A-Za-z])(?=\S{0,60}[\d!#%&*@^+])"
    + SECRET_VALUE
)

COMMANDS = (
    *(_of_programs(*row) for row in PASSWORD_OPTIONS),
    *(rule(hints, "password", before + SECRET_VALUE) for hints, before in PASSWORD_ARGUMENTS),
    rule(" -u| --user & -p", "password", LOGIN_BY_OPTIONS),
)
