# The commands of the published GPT-J example, as tests paste them into a session
# (tests/published/pasted_test.cc and tests/published/container_test.cc). Nothing is replaced.

pip install neural-compressor

pip install -r requirements.txt

python prepare_model.py

mv ./gpt-j-6B/saved_model/1 ./
rm -r ./gpt-j-6B
mv ./1 ./gpt-j-6B

  python convert.py

  python run_benchmark.py --output_dir=./output

  python convert.py --insert_qdq

  python pb_to_pbtxt.py

  python run_benchmark.py --output_dir=./output

  python dump_graph_from_saved_model.py --input_model=./converted_gpt-j-6B
