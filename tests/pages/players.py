"""Which test runs the blocks of which page: for each page the kinds of its blocks (the word behind the fence), with the
file of the test that takes all blocks of that kind from the page."""

PLAYED = {
    "README.md": {
        "python": "tests/pages/test_played.py",
        "console": "tests/pages/test_played.py",
    },
    "ARCHITECTURE.md": {"": "tests/test_documents.py"},
    "docs/access-rights.md": dict.fromkeys(
        ("properties", "", "text", "json"), "tests/cli/security/test_access_rights_page.py"
    ),
    "docs/admin.md": {"python": "tests/client/test_admin_page.py"},
    "docs/audit.md": {"python": "tests/pipeline/audit/test_audit.py"},
    "docs/cluster-operations.md": dict.fromkeys(("properties", "sh"), "tests/end_to_end/test_cluster_page.py"),
    "docs/columns.md": {"python": "tests/client/test_columns_page.py"},
    "docs/coming-from.md": {"python": "tests/client/test_coming_from.py"},
    "docs/console.md": {"console": "tests/pages/test_servers.py"},
    "docs/consumer.md": {"python": "tests/client/test_consumer_page.py"},
    "docs/decoding.md": {"console": "tests/pages/test_loads.py", "sql": "tests/pages/test_loads.py"},
    "docs/doctor.md": {"sh": "tests/pages/test_operations.py"},
    "docs/files.md": {"console": "tests/pages/test_files.py"},
    "docs/installation.md": {"console": "tests/pages/test_operations.py"},
    "docs/logins.md": dict.fromkeys(("properties", ""), "tests/cli/security/test_logins_page.py"),
    "docs/metrics.md": {"console": "tests/pages/test_servers.py", "yaml": "tests/pages/test_servers.py"},
    "docs/mirror.md": {"console": "tests/cli/mirroring/test_page.py"},
    "docs/operations.md": dict.fromkeys(("console", "properties", "sh"), "tests/pages/test_operations.py"),
    "docs/producer.md": {"python": "tests/client/test_producer_page.py"},
    "docs/quick-start.md": dict.fromkeys(("console", "python"), "tests/pages/test_played.py"),
    "docs/quotas.md": dict.fromkeys(("bash", "python"), "tests/handlers/security/test_quotas_page.py"),
    "docs/registry.md": {
        "python": "tests/registry/test_registry_page.py",
        "console": "tests/pages/test_servers.py",
    },
    "docs/schemas.md": {"python": "tests/client/registry/test_producing.py"},
    "docs/search-log.md": {"python": "tests/demo/search/test_search.py"},
    "docs/secure-clients.md": {"python": "tests/client/security/test_secure_clients_page.py"},
    "docs/security.md": dict.fromkeys(("", "properties", "python"), "tests/end_to_end/test_security_page.py"),
    "docs/spark.md": {"python": "tests/pipeline/test_spark_page.py"},
    "docs/streams.md": dict.fromkeys(("python", ""), "tests/pipeline/streams/test_page.py"),
    "docs/testing.md": {"python": "tests/testing/test_examples.py"},
    "docs/tls.md": dict.fromkeys(("", "properties"), "tests/end_to_end/test_tls_page.py"),
    "docs/upsert.md": {"console": "tests/pages/test_loads.py"},
    "docs/warehouse.md": {
        "python": "tests/pipeline/tables/test_readers.py",
        "sql": "tests/pipeline/tables/test_readers.py",
        "console": "tests/pages/test_loads.py",
    },
    "docs/zookeeper-clients.md": {"python": "tests/client/zookeeper/test_clients.py"},
}
