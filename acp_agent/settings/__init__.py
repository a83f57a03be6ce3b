"""`acp-agent.toml`: how one file is read (`file`), where a project's is (`places`), what holds together (`force`)."""
