"""SmolVLA trained on demonstrations of many tasks: settings, small random VLMs, network, actor."""
