"""A real ZooKeeper that knows its clients: by TLS certificates at one port, by names and passwords at the other."""

import os
import subprocess
from pathlib import Path

from harness.certificates import PASSWORD, Authority
from harness.listening import free_port, stop
from harness.patience import wait_until
from harness.quick_jvm import QUICK_JVM
from harness.zookeeper import mode
from moldau.zookeeper.java import find_java

USER, USER_PASSWORD = "kafka", 'se"cret'
_JAAS = "org.apache.zookeeper.server.auth.DigestLoginModule"


class SecureZooKeeper:
    """Use it with `with`. `connect` is the port without TLS, `secure` the one that wants a certificate of `authority`;
    `kafka_opts` names a JAAS file with the user and password that it accepts."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.authority = Authority(folder)
        plain, secure = free_port(), free_port()
        self.connect, self.secure = f"localhost:{plain}", f"localhost:{secure}"
        server = self.authority.signed("server", "localhost")
        (folder / "zoo.cfg").write_text(
            f"tickTime=500\ndataDir={folder}/data\nclientPort={plain}\nsecureClientPort={secure}\n"
            "maxSessionTimeout=120000\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n"
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
            f"ssl.keyStore.location={server.with_suffix('.p12')}\nssl.keyStore.password={PASSWORD}\n"
            f"ssl.trustStore.location={self.authority.trusted}\nssl.enabledProtocols=TLSv1.2,TLSv1.3\n"
            "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
        )
        password = USER_PASSWORD.replace('"', '\\"')
        (folder / "server.jaas").write_text(f'Server {{ {_JAAS} required user_{USER}="{password}"; }};\n')
        self.kafka_opts = self.jaas("client", USER_PASSWORD)
        self._log = folder / "zookeeper.log"
        self._process = self._started()

    def jaas(self, name: str, password: str) -> str:
        """`KAFKA_OPTS` with a JAAS file of that name for our user with that password."""
        path, quoted = self.folder / f"{name}.jaas", password.replace('"', '\\"')
        path.write_text(f'Client {{ {_JAAS} required\n  username="{USER}"\n  password="{quoted}";\n}};\n')
        return f"-Djava.security.auth.login.config={path}"

    def _started(self) -> subprocess.Popen[bytes]:
        java = find_java()
        netty = Path(java.classpath.split(os.pathsep)[0]).parent.glob("netty-*.jar")
        classpath = os.pathsep.join([java.classpath, *(str(jar) for jar in netty)])
        command = [java.program, "-Xmx256m", *QUICK_JVM, "-cp", classpath]
        command.append(f"-Djava.security.auth.login.config={self.folder / 'server.jaas'}")
        command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.folder / "zoo.cfg")]
        with self._log.open("wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self) -> "SecureZooKeeper":
        def serves() -> bool:
            assert self._process.poll() is None, self._log.read_text()[-4000:]
            return mode(self.connect) == "standalone"

        try:
            assert wait_until(serves), self._log.read_text()[-4000:]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)
