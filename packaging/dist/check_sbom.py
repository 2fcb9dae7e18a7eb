"""Checks an SBOM: required fields of CycloneDX 1.6, unique references, and dependencies that exist.

With the package `cyclonedx-python-lib[json-validation]` installed, also against CycloneDX's own JSON schema.
"""

import json
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
bom = json.loads(text)
assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.6", 1)
assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"])
components = [bom["metadata"]["component"], *bom["components"]]
references = {component["bom-ref"] for component in components}
assert len(references) == len(components), "a reference occurs twice"
for component in components:
    assert component["type"] in ("application", "library") and component["name"] and component["version"], component
    # Ours and everything that deny.toml admits have a licence.
    assert component["licenses"][0]["expression"], component
assert {dependency["ref"] for dependency in bom["dependencies"]} == references
for dependency in bom["dependencies"]:
    assert references.issuperset(dependency["dependsOn"]), dependency
checked = "by the rules of check_sbom.py"
try:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
except ImportError:
    pass
else:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert error is None, error
    checked = "by CycloneDX's schema"
print(f"dist: {sys.argv[1].rsplit('/', 1)[-1]}: {len(components)} components, valid {checked}")
