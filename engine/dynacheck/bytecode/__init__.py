"""Code objects, without torch: decode, build, assemble, liveness, listing."""
