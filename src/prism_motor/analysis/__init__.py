"""From rollouts of trained policies to numbers: probes, interactions, embeddings, traces."""
