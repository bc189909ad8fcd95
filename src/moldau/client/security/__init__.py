"""How a client protects its connections and proves who its user is: settings, TLS, logins."""
