"""What tools/chaos is made of: a proxy that spoils connections, a plan of faults, a cluster behind the proxy, reports."""
