"""keys.py - GGUF files of keys and one tensor whose number format is not read, for config-gguf.sh."""
import struct
def s(t): b=t.encode(); return struct.pack('<Q',len(b))+b
def kv(k,v):
    if isinstance(v,str): return s(k)+struct.pack('<I',8)+s(v)
    if isinstance(v,bool): return s(k)+struct.pack('<IB',7,v)
    if isinstance(v,list) and isinstance(v[0],bool): return s(k)+struct.pack('<IIQ',9,7,len(v))+bytes(v)
    if isinstance(v,list): return s(k)+struct.pack('<IIQ',9,5,len(v))+b''.join(struct.pack('<i',x) for x in v)
    return s(k)+struct.pack('<II',4,v)
def write(path,arch,keys,typ=16):
    allk={'general.architecture':arch,'general.name':path}|{f'{arch}.{k}':v for k,v in keys.items()}
    out=b'GGUF'+struct.pack('<IQQ',3,1,len(allk))+b''.join(kv(k,v) for k,v in allk.items())
    out+=s('token_embd.weight')+struct.pack('<IQQIQ',2,256,4,typ,0)
    open(path,'wb').write(out+b'\0'*(-len(out)%32)+b'\0'*4096)
write('gemma3.gguf','gemma3',{'block_count':34,'embedding_length':2560,'attention.head_count':8,'attention.head_count_kv':4,'attention.key_length':256,'attention.value_length':256,'attention.sliding_window':1024,'feed_forward_length':10240,'context_length':131072})
write('gptoss.gguf','gpt-oss',{'block_count':24,'embedding_length':2880,'attention.head_count':64,'attention.head_count_kv':8,'attention.key_length':64,'attention.value_length':64,'attention.sliding_window':128,'expert_count':32,'expert_used_count':4,'expert_feed_forward_length':2880})
write('granite4.gguf','granitehybrid',{'block_count':40,'embedding_length':4096,'attention.head_count':32,'attention.head_count_kv':[8 if i%10==5 else 0 for i in range(40)],'ssm.conv_kernel':4,'ssm.state_size':128,'ssm.group_count':1,'ssm.inner_size':8192,'ssm.time_step_rank':128,'feed_forward_length':768})
write('deepseek3.gguf','deepseek2',{'block_count':61,'embedding_length':7168,'attention.head_count':128,'attention.head_count_kv':1,'attention.key_length':576,'attention.value_length':512,'attention.key_length_mla':192,'attention.value_length_mla':128,'attention.kv_lora_rank':512,'attention.q_lora_rank':1536,'rope.dimension_count':64,'expert_count':256,'expert_used_count':8,'expert_feed_forward_length':2048,'leading_dense_block_count':3,'feed_forward_length':18432})
write('gemma4.gguf','gemma4',{'block_count':30,'embedding_length':2816,'attention.head_count':16,'attention.head_count_kv':[2 if (i+1)%6==0 else 8 for i in range(30)],'attention.key_length':512,'attention.value_length':512,'attention.key_length_swa':256,'attention.value_length_swa':256,'attention.sliding_window':1024,'attention.sliding_window_pattern':[(i+1)%6!=0 for i in range(30)]})
write('qwen3next.gguf','qwen3next',{'block_count':48,'embedding_length':2048,'attention.head_count':16,'attention.head_count_kv':2,'attention.key_length':256,'attention.value_length':256,'full_attention_interval':4,'ssm.conv_kernel':4,'ssm.state_size':128,'ssm.group_count':16,'ssm.inner_size':4096,'ssm.time_step_rank':32})
write('glm.gguf','glm4moe',{'block_count':47,'nextn_predict_layers':1,'embedding_length':4096,'attention.head_count':96,'attention.head_count_kv':8,'attention.key_length':128,'attention.value_length':128})
write('llama.gguf','llama',{'block_count':32,'embedding_length':4096,'attention.head_count':32,'attention.head_count_kv':8})
write('tomorrow.gguf','tomorrow',{'block_count':32,'embedding_length':4096,'attention.head_count':32})
