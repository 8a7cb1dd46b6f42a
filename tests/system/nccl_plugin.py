"""NCCL's part: the tables of functions of a network plugin, called as NCCL calls them. Layouts are
written down here once more, from the declarations of the interface, so that the plugin is not its
own judge."""

import ctypes as c
import time

P, I, Z = c.c_void_p, c.c_int, c.c_size_t
VERSIONS = (8, 9, 10, 11, 12)
HOST_MEMORY, GPU_MEMORY = 1, 2
HANDLE_BYTES = 128
SUCCESS, SYSTEM, INTERNAL, ARGUMENT, USAGE, REMOTE = 0, 2, 3, 4, 5, 6
LIMIT_S = 60
Logger = c.CFUNCTYPE(None, I, c.c_ulong, c.c_char_p, I, c.c_char_p, c.c_char_p)

NET = (
    "name init devices getProperties listen connect accept regMr regMrDmaBuf deregMr isend irecv iflush test closeSend"
    " closeRecv closeListen getDeviceMr irecvConsumed"
).split()
COLLNET = (
    "name init devices getProperties listen connect reduceSupport regMr regMrDmaBuf deregMr iallreduce iallgather"
    " ireducescatter iflush test closeColl closeListen"
).split()
#: What NCCL may find absent.
OPTIONAL = {"regMrDmaBuf", "getDeviceMr", "irecvConsumed", "iallgather", "ireducescatter", "makeVDevice", "setNetAttr"}


def entries(version):
    """The entries of both tables, in order."""
    more = (["makeVDevice"] if version >= 9 else []) + (["finalize"] if version >= 11 else [])
    return NET + more + (["setNetAttr"] if version >= 11 else []), COLLNET + more


def properties(version):
    """The structure that getProperties fills."""
    fields = [("name", c.c_char_p), ("pciPath", c.c_char_p), ("guid", c.c_uint64), ("ptrSupport", I), ("regIsGlobal", I)]
    fields += [("forceFlush", I)] if version >= 9 else []
    fields += [("speed", I), ("port", I), ("latency", c.c_float), ("maxComms", I), ("maxRecvs", I)]
    fields += [("netDeviceType", I), ("netDeviceVersion", I)]
    if version >= 9:
        fields += [("ndevs", I), ("devs", I * (8 if version >= 12 else 4)), ("maxP2pBytes", Z), ("maxCollBytes", Z)]
    fields += [("maxMultiRequestSize", I)] if version >= 11 else []
    fields += [("railId", c.c_int16), ("planeId", c.c_int16)] if version >= 12 else []
    return type(f"Properties{version}", (c.Structure,), {"_fields_": fields})


loggers = []


class Failed(Exception):
    def __init__(self, what, code, lines):
        super().__init__(f"{what} returned {code}: {lines}")
        self.code, self.lines = code, lines


class Table:
    """One table; its functions by their names."""

    def __init__(self, library, symbol, names, lines):
        self.lines = lines
        self.pointers = dict(zip(names, (P * len(names)).in_dll(library, symbol)))
        self.name = c.cast(self.pointers["name"], c.c_char_p).value.decode()

    def __call__(self, what, *arguments):
        """Calls a function; each argument is a pair of type and value."""
        function = c.CFUNCTYPE(I, *(kind for kind, _ in arguments))(self.pointers[what])
        code = function(*(value for _, value in arguments))
        if code != SUCCESS:
            raise Failed(what, code, self.lines[-1:])


class Plugin:
    """Both tables of one version, after their init."""

    def __init__(self, path, version):
        self.version = version
        library = c.CDLL(path)
        net, collnet = entries(version)
        self.lines = []
        self.logger = Logger(lambda _level, _parts, _source, _line, form, text: self.lines.append((form % text).decode()))
        # NCCL has one logger, as long as it runs.
        loggers.append(self.logger)
        self.net = Table(library, f"ncclNetPlugin_v{version}", net, self.lines)
        self.collnet = Table(library, f"ncclCollNetPlugin_v{version}", collnet, self.lines)
        self.init()

    def init(self):
        logger, context = (Logger, self.logger), P(1)
        if self.version <= 9:
            self.net("init", logger)
            self.collnet("init", logger)
        elif self.version == 10:
            self.net("init", logger, (P, None))
            self.collnet("init", logger)
        else:
            configuration = I(-1)
            self.net("init", (P, c.byref(context)), (c.c_uint64, 7), (P, c.byref(configuration)), logger, (P, None))
            self.collnet("init", (P, c.byref(context)), (c.c_uint64, 7), logger)
        self.context = context.value if self.version >= 11 else None

    def finalize(self):
        if self.version >= 11:
            self.net("finalize", (P, self.context))
            self.collnet("finalize", (P, self.context))

    def devices(self, table):
        count = I(-1)
        table("devices", (P, c.byref(count)))
        return count.value

    def properties(self, table, device):
        found = properties(self.version)()
        table("getProperties", (I, device), (P, c.byref(found)))
        return found

    def in_context(self):
        return [(P, self.context)] if self.version >= 11 else []

    def listen(self, table, device=0):
        handle, comm = c.create_string_buffer(HANDLE_BYTES), P()
        table("listen", *self.in_context(), (I, device), (P, c.addressof(handle)), (P, c.byref(comm)))
        assert comm.value, "a listener is there at once"
        return handle, comm.value

    def connect_once(self, handle, device=0):
        """A sending end, or None as long as there is none."""
        comm, offload = P(), P()
        configuration = [(P, None)] if self.version == 10 else []
        self.net(
            "connect", *self.in_context(), (I, device), *configuration, (P, c.addressof(handle)), (P, c.byref(comm)),
            (P, c.byref(offload)),
        )
        return comm.value

    def accept_once(self, listener):
        comm, offload = P(), P()
        self.net("accept", (P, listener), (P, c.byref(comm)), (P, c.byref(offload)))
        return comm.value

    def register(self, table, comm, buffer, kind=HOST_MEMORY):
        registration = P()
        table("regMr", (P, comm), (P, address(buffer)), (Z, buffer.nbytes), (I, kind), (P, c.byref(registration)))
        return registration.value

    def send(self, comm, buffer):
        """A request, or None if it has to be tried again."""
        size, request = (Z if self.version >= 9 else I, buffer.nbytes), P()
        profile = [(P, None)] if self.version >= 10 else []
        self.net("isend", (P, comm), (P, address(buffer)), size, (I, 0), (P, None), *profile, (P, c.byref(request)))
        return request.value

    def receive(self, comm, buffer, count=1):
        # NCCL says by a 1 that it needs no completion of its own; a plugin may heed that or not.
        data, tags, registrations, request = (P * 1)(address(buffer)), (I * 1)(0), (P * 1)(None), P(1)
        sizes = ((Z if self.version >= 9 else I) * 1)(buffer.nbytes)
        profile = [(P, registrations)] if self.version >= 10 else []
        self.net("irecv", (P, comm), (I, count), (P, data), (P, sizes), (P, tags), (P, registrations), *profile, (P, c.byref(request)))
        return request.value

    def test(self, table, request):
        """(whether it is done, how many bytes)."""
        done, size = I(-1), I(-1)
        table("test", (P, request), (P, c.byref(done)), (P, c.byref(size)))
        return bool(done.value), size.value

    def join(self, handles, size, rank, listener):
        """A CollNet communicator of all whose handles these are."""
        pointers, comm = (P * size)(*map(c.addressof, handles)), P()
        self.collnet("connect", (P, pointers), (I, size), (I, rank), (P, listener), (P, c.byref(comm)))
        return comm.value

    def supports(self, dtype, op):
        answer = I(-1)
        self.collnet("reduceSupport", (I, dtype), (I, op), (P, c.byref(answer)))
        return answer.value

    def allreduce(self, comm, source, target, count, dtype, op, registered=True):
        request = P()
        handles = [self.register(self.collnet, comm, buffer) if registered else None for buffer in (source, target)]
        self.collnet(
            "iallreduce", (P, comm), (P, address(source)), (P, address(target)), (Z if self.version >= 9 else I, count),
            (I, dtype), (I, op), *((P, handle) for handle in handles), (P, c.byref(request)),
        )
        return request.value


def address(buffer):
    return buffer.ctypes.data


def until(look, what):
    """What a function gives at last, asked as NCCL's proxy asks: again and again."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = look()
        if found is not None and found is not False:
            return found
    raise AssertionError(f"{what} took more than {LIMIT_S} s")
