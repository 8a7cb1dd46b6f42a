//! Laboratory: fabrics of real processes on loopback and in network namespaces
