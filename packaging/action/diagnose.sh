#!/usr/bin/env bash
# The last step of the action: diagnoses a command, with annotations and a job summary. Inputs are in ROUNDTRIP_*.
set -euo pipefail

program="${ROUNDTRIP:-$RUNNER_TEMP/roundtrip/bin/roundtrip}"
flags=(--fail-on "${ROUNDTRIP_FAIL_ON:-medium}" --runs "${ROUNDTRIP_RUNS:-1}")
if [ -n "${ROUNDTRIP_ALLOW:-}" ]; then flags+=(--allow "$ROUNDTRIP_ALLOW"); fi
if [ -n "${ROUNDTRIP_BASELINE:-}" ]; then flags+=(--baseline "$ROUNDTRIP_BASELINE"); fi
# owner/repository/.github/workflows/NAME.yml@REF
if [[ "${GITHUB_WORKFLOW_REF:-}" =~ (\.github/workflows/[^@]+)@ ]]; then flags+=(--locate "${BASH_REMATCH[1]}"); fi
exec "$program" diagnose --run --isolated --format github "${flags[@]}" -- bash -c "$ROUNDTRIP_RUN"
