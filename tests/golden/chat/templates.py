"""Chat templates as the families publish them in tokenizer_config.json or chat_template.jinja: name -> (first token, Jinja).
What concerns tools is shortened: no message of ours reaches it."""

ALTERNATE = ("{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must "
             "alternate user/assistant/user/assistant/...') }}{% endif %}")

LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]"
    "['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in "
    "loop_messages %}" + ALTERNATE + "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + "
    "system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == "
    "'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}")

LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message"
    "['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = "
    "bos_token + content %}{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}")

LLAMA31_DATE = """    {%- set date_string = "26 Jul 2024" %}
"""
LLAMA32_DATE = """    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
"""


def llama31(date):
    return """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
""" + date + """{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message, so we can slot it into the right place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- System message + builtin tools #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""


MISTRAL1 = (
    "{{ bos_token }}{% for message in messages %}" + ALTERNATE + "{% if message['role'] == 'user' %}{{ '[INST] ' + message"
    "['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}"
    "{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}")


def mistral(before, after, tools):
    return """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}""" + tools + """
        {%- if loop.last and system_message is defined %}
            {{- \"""" + before + """\" + system_message + "\\n\\n" + message["content"] + \"""" + after + """\" }}
        {%- else %}
            {{- \"""" + before + """\" + message["content"] + \"""" + after + """\" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported!") }}
    {%- endif %}
{%- endfor %}
"""


MISTRAL_TOOLS = """
        {%- if tools is defined and tools is not none and loop.last %}
            {{- "[AVAILABLE_TOOLS] [" }}{{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}"""

VICUNA = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]"
    "['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = 'A chat between a curious user and an "
    "artificial intelligence assistant. The assistant gives helpful, detailed, and polite answers to the user\\'s questions.' "
    "%}{% endif %}{{ bos_token + system_message }}{% for message in loop_messages %}" + ALTERNATE + "{% if message['role'] == "
    "'user' %}{{ ' USER: ' + message['content'].strip() }}{% elif message['role'] == 'assistant' %}{{ ' ASSISTANT: ' + message"
    "['content'].strip() + eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}")


def chatml(system):
    return ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
            + system + "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
            "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nYou may call one or more functions<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def qwen3(prompt):
    return """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nYou may call one or more functions<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
""" + prompt + """{%- endif %}"""


QWEN3_HYBRID = """    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
"""

PHI3 = (
    "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == "
    "'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt "
    "%}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}")
PHI3_FIRST = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') %}{{'<|user|>' + '\n' + message['content'] "
    "+ '<|end|>' + '\n' + '<|assistant|>' + '\n'}}{% elif (message['role'] == 'assistant') %}{{message['content'] + '<|end|>' "
    "+ '\n'}}{% endif %}{% endfor %}")
PHI4_MINI = (
    "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none "
    "%}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}"
    "{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}")
PHI4 = (
    "{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] "
    "+ '<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% elif (message['role'] == 'assistant') %}{{'<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}")

GEMMA2 = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}" + ALTERNATE + "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else "
    "%}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}")
GEMMA3 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

TEMPLATES = {
    "Llama 2": ("<s>", LLAMA2),
    "Llama 3": ("<|begin_of_text|>", LLAMA3),
    "Llama 3.1": ("<|begin_of_text|>", llama31(LLAMA31_DATE)),
    "Llama 3.1, dated": ("<|begin_of_text|>", llama31(LLAMA31_DATE)),
    "Llama 3.2": ("<|begin_of_text|>", llama31(LLAMA32_DATE)),
    "Mistral 7B v0.2": ("<s>", MISTRAL1),
    "Mistral 7B v0.2, later": ("<s>", mistral(" [INST] ", " [/INST]", "")),
    "Mistral 7B v0.3": ("<s>", mistral("[INST] ", "[/INST]", MISTRAL_TOOLS)),
    "Mistral NeMo": ("<s>", mistral("[INST]", "[/INST]", MISTRAL_TOOLS.replace("] [", "]["))),
    "Vicuna": ("<s>", VICUNA),
    "SmolLM2": ("<|im_start|>", chatml("You are a helpful AI assistant named SmolLM, trained by Hugging Face")),
    "Qwen2": ("", chatml("You are a helpful assistant.")),
    "Qwen2.5": ("", QWEN25),
    "Qwen3": ("", qwen3(QWEN3_HYBRID)),
    "Qwen3-Instruct-2507": ("", qwen3("    {{- '<|im_start|>assistant\\n' }}\n")),
    "Qwen3-Thinking-2507": ("", qwen3("    {{- '<|im_start|>assistant\\n<think>\\n' }}\n")),
    "Phi-3": ("<s>", PHI3),
    "Phi-3, first": ("<s>", PHI3_FIRST),
    "Phi-4-mini": ("<|endoftext|>", PHI4_MINI),
    "Phi-4": ("<|endoftext|>", PHI4),
    "Gemma 2": ("<bos>", GEMMA2),
    "Gemma 3": ("<bos>", GEMMA3),
}

# date_string, as a server gives it with chat_template_kwargs. Without it a template that asks for the day writes today's.
DATES = {"Llama 3.1, dated": "1 Jan 2027", "Llama 3.2": "05 Mar 2026"}

# Not to be guessed at: other system turns, and what is no chat template at all.
UNKNOWN = {
    "a system turn in French": LLAMA2.replace("{% else %}{% set loop_messages = messages %}{% set system_message = false",
                                              "{% elif true == true %}{% set loop_messages = messages %}{% set "
                                              "system_message = 'Bonjour'"),
    "Mistral Small 3": "{{ bos_token }}{{ '[SYSTEM_PROMPT]' + x + '[/SYSTEM_PROMPT]' }}{{ '[INST]' + y + '[/INST]' }}",
    "SmolLM3": "{%- if enable_thinking is not defined -%}{% set enable_thinking = true %}{% endif %}<|im_start|>system\n",
    "something else": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    "Alpaca": "{{ '### Instruction:\n' + message['content'] + '\n\n### Response:\n' }}",
}

# Templates that stand here without the part that writes the assistant's messages.
USER_ALONE = {"Qwen2.5", "Qwen3", "Qwen3-Instruct-2507", "Qwen3-Thinking-2507"}
