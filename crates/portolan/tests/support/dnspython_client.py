"""Asks a server for www.example.org with dnspython, over each encrypted transport that it supports.

Usage: dnspython_client.py TLS-PORT HTTPS-PORT HTTPS3-PORT QUIC-PORT CA-FILE
"""

import sys

import dns.message
import dns.query
from dns.query import HTTPVersion

ADDRESS, NAME = "127.0.0.1", "dns.example.org"


def https(query, port, ca, version, post):
    url = f"https://{NAME}:{port}/dns-query"
    return dns.query.https(
        query, url, timeout=10, verify=ca, bootstrap_address=ADDRESS, http_version=version, post=post
    )


def main():
    tls_port, https_port, https3_port, quic_port = map(int, sys.argv[1:5])
    ca = sys.argv[5]
    stream = {"timeout": 10, "verify": ca, "server_hostname": NAME}
    ways = {
        "tls": lambda query: dns.query.tls(query, ADDRESS, port=tls_port, **stream),
        "quic": lambda query: dns.query.quic(query, ADDRESS, port=quic_port, **stream),
    }
    versions = (("h1", HTTPVersion.H1, https_port), ("h2", HTTPVersion.H2, https_port), ("h3", HTTPVersion.H3, https3_port))
    for label, version, port in versions:
        for method, post in (("post", True), ("get", False)):
            ways[f"{label} {method}"] = lambda query, v=version, p=port, m=post: https(query, p, ca, v, m)
    for way, ask in ways.items():
        # Half of the queries have EDNS with padding.
        for pad in (0, 128):
            query = dns.message.make_query("www.example.org", "A", use_edns=0 if pad else False, pad=pad)
            answer = ask(query)
            assert answer.rcode() == 0 and "192.0.2.1" in answer.to_text(), (way, answer.to_text())
        print(way)


main()
