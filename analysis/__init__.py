"""What is computed about answers and settings: explanations, audits, explorations, sizes to use.

Domain objects in, values out; `app/text` says them in words.

from analysis.audit import AuditQuestion, AuditScope, audit
found = audit(AuditQuestion(pipeline, AuditScope(setting=setting)))
"""
